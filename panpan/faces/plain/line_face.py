"""Prints the events of a turn, line by line."""

import shutil
from collections.abc import Sequence
from time import monotonic

from panpan.cli_kit.failures import StdoutWriter
from panpan.faces.terminal.rendering.displays import display_rows
from panpan.faces.terminal.rendering.messages import user_message_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import (
    AnswerText,
    ToolLines,
    WaitingTime,
    beginning_of_last_turns,
    diff_text,
    earlier,
    past_events,
    task_end_told,
    turn_summary,
    verification_lines,
    was_interrupted,
)
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import ChecklistDisplay, DiffDisplay, TableDisplay
from panpan.types.events import CommandRan, Event, TurnEnded
from panpan.types.messages import Message, ToolResultMessage, UserMessage

MAX_DIFF_LINES = 60
"""Most lines of one file's diff that are shown."""

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_PLAIN = Theme("plain", has_sequences=False)
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


class LineFace:
    """Prints a turn, line by line.

    Args:
        out: Standard output.
        has_colour: True if diffs are coloured and notes dim.
        waiting: Time spent waiting for the user; None if nobody is asked.
    """

    def __init__(self, out: StdoutWriter, *, has_colour: bool, waiting: WaitingTime | None = None) -> None:
        self._out = out
        self._has_colour = has_colour
        self._answer = AnswerText(out)
        self._tool_lines = ToolLines()
        self._waiting = waiting or WaitingTime(monotonic)
        self._waited_before_s = 0.0
        """Time spent waiting for the user by the end of the last turn."""

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    async def show(self, event: Event) -> None:
        """Print the lines for `event`."""
        await self._answer.follow(event)
        for line in self._tool_lines.lines(event):
            await self._answer.break_line()
            await self._note(line)
        match event:
            case ToolResultMessage(display=DiffDisplay(files=files)):
                for file in files:
                    await self._diff(file.diff)
            case ToolResultMessage(display=ChecklistDisplay() | TableDisplay() as display):
                for row in display_rows(display, max(self.width - 4, 8), _PLAIN):
                    await self._out.write(f"    {row}\n")
            case CommandRan(text=text):
                await self._out.write(f"{text}\n")
            case TurnEnded():
                await self._answer.end()
                for line in verification_lines(event):
                    await self._note(line)
                took = " · ".join(part for part, _ in turn_summary(event, self._take_waited_s()))
                await self._note(f"[Interrupted] {took}" if event.is_interrupted else took)
            case _:
                pass

    async def show_past(self, messages: Sequence[Message]) -> None:
        """Print the last turns of a resumed conversation, and how to see the earlier ones."""
        begin = beginning_of_last_turns(messages)
        if begin:
            await self._note(earlier(begin, "/export writes them"))
        await self.show_all(messages[begin:])

    async def show_all(self, messages: Sequence[Message]) -> None:
        for event in past_events(messages):
            if isinstance(event, UserMessage):
                await self.end()
                rows = user_message_lines(event, self.width, _PLAIN)
                await self._out.write("".join(f"{row}\n" for row in rows))
                continue
            if line := task_end_told(event):
                await self.end()
                await self._note(line)
            await self.show(event)
            if was_interrupted(event):
                await self.end()
                await self._note("[Interrupted]")
        await self.end()

    async def end(self) -> None:
        """End the turn: the next output begins on a line of its own."""
        await self._answer.end()

    def note_echo(self) -> None:
        """Put what comes next on a line of its own: the terminal has echoed a key."""
        self._answer.note_other()

    async def rows(self, rows: Sequence[str]) -> None:
        """Print rows on lines of their own."""
        await self._answer.break_line()
        await self._out.write("".join(f"{row}\n" for row in rows))

    def _take_waited_s(self) -> float:
        """Return the time spent waiting for the user since the last call."""
        before_s, self._waited_before_s = self._waited_before_s, self._waiting.seconds
        return self._waited_before_s - before_s

    async def _note(self, line: str) -> None:
        await self._out.write(f"{_DIM}{line}{_RESET}\n" if self._has_colour else f"{line}\n")

    async def _diff(self, diff: str) -> None:
        lines = diff_text(clean_for_terminal(diff))
        for line in lines[:MAX_DIFF_LINES]:
            colour = _COLOURS.get(line[:1], "") if self._has_colour else ""
            await self._out.write(f"    {colour}{line}{_RESET if colour else ''}\n")
        if len(lines) > MAX_DIFF_LINES:
            await self._note(f"    … {len(lines) - MAX_DIFF_LINES} more lines")
