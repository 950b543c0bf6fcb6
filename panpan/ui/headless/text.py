"""Text: the answer on standard output as it streams and nothing else; progress on a terminal's standard error."""

from collections.abc import Callable

from panpan.system.terminal_text import clean_for_terminal
from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta
from panpan.types.messages import AssistantMessage
from panpan.ui.headless.face import HeadlessFace, TurnRecord
from panpan.ui.headless.outcome import Outcome
from panpan.ui.stdout import StdoutWriter
from panpan.ui.tool_lines import ToolLines


class TextFace(HeadlessFace):
    """Prints the text of the replies.

    A reply that failed half-way starts again from its beginning; what the new one has in common with what is printed
    already is not printed twice.

    Args:
        out: Standard output.
        note: Prints one line of progress; None where there is no terminal for it.
    """

    def __init__(self, out: StdoutWriter, note: Callable[[str], None] | None) -> None:
        self._out = out
        self._note = note
        self._printed = ""
        """What is printed of the reply that is arriving."""
        self._already = ""
        """What was printed of a try that failed and the new one has not reached yet."""
        self._ends_line = True
        self._tool_lines = ToolLines()

    async def begin(self) -> None:
        pass

    async def show(self, event: Event) -> None:
        match event:
            case ReplyStarted():
                await self._end_line()
            case TextDelta(text=text):
                await self._print_new(text)
            case BlockStarted(kind="text"):
                await self._end_line()
            case RetryScheduled():
                self._already, self._printed = self._printed + self._already, ""
            case AssistantMessage():
                self._printed = self._already = ""
            case _:
                pass
        if self._note is not None and (line := self._tool_lines.line(event)) is not None:
            await self._end_line()
            self._note(line)

    async def end(self, record: TurnRecord, outcome: Outcome, duration_s: float) -> None:
        self._already = ""
        await self._end_line()

    async def _print_new(self, text: str) -> None:
        """Print what of `text` is not on the screen already."""
        self._printed += text
        if self._already:
            same = _common_length(self._already, text)
            if same < len(text) and same < len(self._already):  # the new try says something else
                self._already = ""
                await self._end_line()
                text = self._printed
            else:
                self._already, text = self._already[same:], text[same:]
        if text:
            await self._out.write(clean_for_terminal(text) if self._out.is_terminal else text)
            self._ends_line = text.endswith("\n")

    async def _end_line(self) -> None:
        """Put what comes next on a line of its own; not while a failed reply may still be continued."""
        if not self._ends_line and not self._already:
            self._ends_line = True
            await self._out.write("\n")


def _common_length(one: str, other: str) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
