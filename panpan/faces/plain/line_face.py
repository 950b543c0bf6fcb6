"""A session on a terminal that only gets lines: its output, questions and plans, and the answers."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic

from anyio import Lock

from panpan.cli_kit.failures import StdoutWriter
from panpan.faces.permission_answers import WHOLE_CALL, all_reasons, answers_to, why_it_matters, with_words
from panpan.faces.stdin import StdinReader
from panpan.faces.terminal.rendering.displays import display_rows
from panpan.faces.terminal.rendering.messages import user_message_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import (
    AnswerText,
    ToolLines,
    WaitingTime,
    beginning_of_last_turns,
    counts_text,
    diff_text,
    earlier,
    past_events,
    task_end_told,
    turn_summary,
    was_interrupted,
)
from panpan.system.text.terminal_text import clean_for_terminal, spelled_out
from panpan.types.content import ChecklistDisplay, DiffDisplay, TableDisplay
from panpan.types.events import Event, SubagentEvent, TurnEnded
from panpan.types.messages import Message, ToolResultMessage, UserMessage
from panpan.types.permission import (
    PermissionAnswer,
    PermissionMode,
    PermissionQuestion,
    PlanApproved,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)

PLAN_KEYS: Mapping[str, PermissionMode] = {
    "y": "default",
    "yes": "default",
    "a": "acceptEdits",
    "m": "auto",
    "d": "dontAsk",
    "b": "bypassPermissions",
}
"""What is typed to approve a plan, and the mode in which the work goes on then, where that is offered."""

_ANSWERS: Mapping[PermissionMode, str] = {
    "default": "y = go on, and ask before edits",
    "acceptEdits": "a = go on, and accept edits automatically",
    "auto": "m = go on in auto mode, as before",
    "dontAsk": "d = go on in the mode dontAsk, as before",
    "bypassPermissions": "b = go on in bypassPermissions mode: nearly everything runs without asking",
}


def plan_text(proposal: PlanProposal, file: str) -> str:
    """Return the plan, with what cannot be seen spelled out, where it is kept, and the answers."""
    plan = [f"    {spelled_out(line)}" for line in proposal.text.split("\n")]
    answers = [f"  {_ANSWERS[mode]}" for mode in proposal.modes if mode in _ANSWERS]
    return "\n".join(
        [
            "? The plan:",
            *plan,
            f"  (kept in {spelled_out(file)})",
            *answers,
            "  n = keep planning, or type what to change: ",
        ]
    )


_ESCAPE = "\x1b"


def question_text(question: UserQuestion) -> str:
    """Return a question with its numbered choices and what may be typed; safe for a terminal."""
    lines = [f"? {_on_one_line(question.header)}: {_shown_part(question.question)}"]
    for number, choice in enumerate(question.choices, 1):
        lines.append(f"{number:5}. {_shown_part(choice.label)}")
        if choice.description.strip():
            lines.append(f"       {_shown_part(choice.description)}")
    numbers = "one number or more, such as 1 2" if question.allows_several else "a number"
    return "\n".join([*lines, f"  {numbers}, or your own words; an empty line declines: "])


def answer_in(said: str, question: UserQuestion) -> UserAnswer | None:
    """Return what a line answers; None where a number in it is none of the choices.

    Args:
        said: Not `is_declined`.
        question: What was asked.
    """
    words = said.replace(",", " ").split()
    if not all(word.isdecimal() for word in words) or (len(words) > 1 and not question.allows_several):
        return UserAnswer(text=said)
    by_number = {str(number): choice.label for number, choice in enumerate(question.choices, 1)}
    if not words or not by_number.keys() >= set(words):
        return None
    return UserAnswer(tuple(label for number, label in by_number.items() if number in words))


def is_declined(said: str) -> bool:
    """Return whether a line says nothing, as where only ESC was typed before Enter."""
    return not said.strip(f"{_ESCAPE} \t")


def _shown_part(text: str) -> str:
    return "\n       ".join(spelled_out(line) for line in text.split("\n"))


def _on_one_line(text: str) -> str:
    return spelled_out(" ".join(text.split()))


# What a person types on a terminal, up to Enter.
#
# The rule: lines that arrive together, as those of a paste do, are one text. So a paste starts one turn and not
# several, and a `y` that begins a paste answers no question.

PASTE_GAP_S = 0.03
"""Lines that follow each other faster are not typed: nobody presses Enter 30 times a second."""

_MOST_FLUSHES = 100
"""A paste that takes longer than 3 s to arrive is no paste, and a terminal that was closed always has more."""


class LineReader:
    """Reads a terminal; whoever asks first gets what is typed next.

    Args:
        stdin: Reads the terminal.
    """

    def __init__(self, stdin: StdinReader) -> None:
        self._stdin = stdin
        self._lines: list[bytes] = []
        """Of the text that is arriving."""

    async def next(self) -> str | None:
        """Return the next text without its last line end, or None where the input has ended (Ctrl+D)."""
        self._lines.clear()
        while (line := await self._stdin.line()) is not None:
            self._lines.append(line)
            if not await self._stdin.has_more(within_s=PASTE_GAP_S) and not self._stdin.take_begun_line():
                break
        if not self._lines:
            return None
        return b"".join(self._lines).decode(errors="replace").removesuffix("\n")

    async def drop_typed_ahead(self) -> bool:
        """Forget what was typed before now, and what is arriving with it; return whether that was a line or more."""
        self.forget()
        flushes = 0
        while flushes < _MOST_FLUSHES and await self._stdin.has_more(within_s=PASTE_GAP_S):
            self._stdin.flush_terminal()
            flushes += 1
        self._stdin.flush_terminal()  # a line that is half typed cannot be seen
        return flushes > 0

    def go_on(self) -> None:
        """Take what is typed behind a Ctrl+D, too."""
        self._stdin.go_on()

    def forget(self) -> None:
        """Forget what was read and not returned; what the terminal still holds it drops itself at Ctrl+C."""
        self._lines.clear()
        self._stdin.forget()


DROPPED = "(what you typed before this question was dropped)\n"


class LineAsker:
    """Asks one question after the other; the end of the input is a no.

    Args:
        out: Where the question is printed.
        lines: What the user types.
        shown: Returns a path as people write it.
        clock: Returns seconds that only ever grow.
    """

    def __init__(
        self,
        out: StdoutWriter,
        lines: LineReader,
        *,
        shown: Callable[[Path], str] = str,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.waiting = WaitingTime(clock)
        """How long the user was waited for."""
        self._shown = shown
        self._out = out
        self._lines = lines
        self._one_at_a_time = Lock()

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        answers = {one.key: one.given for one in answers_to(question)}
        text = _text_of(question)
        while (said := await self._said_to(text)) in ("", "?"):
            why = [f"  {_shown(reason)}" for reason in all_reasons(question)] if said == "?" else []
            text = "\n".join([*why, _text_of(question)])
        if said is None:
            return PermissionAnswer(is_allowed=False)
        key = {"yes": "y", "no": "n"}.get(said.lower(), said.lower())
        # Anything else is a no with what to do instead, "yes, but" included.
        return answers.get(key) or with_words(answers["n"], said)

    async def plan(self, proposal: PlanProposal) -> PlanApproved | PlanRejected:
        """Print the plan and wait for what the user says to it; implements `PlanAsker`."""
        said = await self._answer_to(plan_text(proposal, self._shown(proposal.file)))
        mode = PLAN_KEYS.get(said.lower())
        if mode is not None and mode in proposal.modes:
            return PlanApproved(mode)
        return PlanRejected("" if said.lower() in ("", "n", "no") else said)

    async def user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Print the questions, one after the other, and return the answers; implements `UserAsker`."""
        answers: list[UserAnswer] = []
        for question in questions:
            text = question_text(question)
            while not is_declined(said := await self._answer_to(text)):
                if (answer := answer_in(said, question)) is not None:
                    answers.append(answer)
                    break
                text = f"there is no such number\n{question_text(question)}"
            else:
                return None
        return answers

    async def _answer_to(self, question: str) -> str:
        return await self._said_to(question) or ""

    async def _said_to(self, question: str) -> str | None:
        """Return what is typed behind a question; None where the input has ended."""
        with self.waiting.counted():
            async with self._one_at_a_time:
                # what was typed before the question was on the screen does not answer it
                dropped = DROPPED if await self._lines.drop_typed_ahead() else ""
                await self._out.write(f"\n{dropped}{question}")
                said = await self._lines.next()
                return None if said is None else said.strip()


class YesOrNo:
    """Asks what is answered with yes or no, until it is; the end of the input is no answer."""

    def __init__(self, out: StdoutWriter, lines: LineReader) -> None:
        self._out = out
        self._lines = lines

    async def __call__(self, question: str) -> bool | None:
        await self._lines.drop_typed_ahead()
        while True:
            await self._out.write(question)
            match await self._lines.next():
                case None:
                    return None
                case answer if (said := answer.strip().lower()) in ("y", "yes", "n", "no"):
                    return said.startswith("y")


def _text_of(question: PermissionQuestion) -> str:
    who = f"{_shown(question.agent)} asks: " if question.agent else ""
    said = filter(None, (question.offer.bounds, why_it_matters(question)))
    answers = [f"  {one.key} = {one.text[:1].lower()}{one.text[1:]}" for one in answers_to(question)]
    last = "  ? = why; or type what to do instead: "
    return "\n".join(
        [
            f"? {who}{_shown(question.head)}",
            *_what_would_run(question),
            *(f"  {_shown(text)}" for text in said),
            *answers,
            last,
        ]
    )


def _what_would_run(question: PermissionQuestion) -> Iterator[str]:
    """Yield the change as a diff where it is known, else the arguments, all of it and exactly."""
    wording = question.wording
    if wording.effect:
        yield f"    {_shown(wording.effect)}"
    files = question.preview.files if question.preview is not None else ()
    if files:
        yield f"    {_shown(question.title)}"
    for file in files:
        mark = " (new)" if file.is_new else " (deleted)" if file.is_deleted else ""
        yield f"    {_shown(file.path)}{mark} {counts_text(file)}"
        yield from (f"      {spelled_out(line)}" for line in diff_text(file.diff))
    if question.preview is not None and question.preview.is_cut:
        yield f"    {WHOLE_CALL}"
    elif files:
        return
    for key, value in question.input.items():
        name = "" if key == wording.main_argument else f"{_shown(key)}: "
        yield f"    {name}{_shown(value if isinstance(value, str) else json.dumps(value, default=str))}"


def _shown(text: str) -> str:
    """Return `text` with every character spelled out that a terminal would act on or not show."""
    return "\n      ".join(spelled_out(line) for line in text.split("\n"))


MAX_DIFF_LINES = 60
"""Lines of one file's diff that are shown."""

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_PLAIN = Theme("plain", has_sequences=False)
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


class LineFace:
    """Prints a turn, line by line.

    Args:
        out: Standard output.
        has_colour: True if diffs are coloured and notes dim.
        waiting: How long the user was waited for; None: nobody is asked.
    """

    def __init__(self, out: StdoutWriter, *, has_colour: bool, waiting: WaitingTime | None = None) -> None:
        self._out = out
        self._has_colour = has_colour
        self._answer = AnswerText(out)
        self._tool_lines = ToolLines()
        self._waiting = waiting or WaitingTime(monotonic)
        self._waited_before_s = 0.0
        """When the last turn ended."""
        self._held: list[Event] = []
        """What subagents did while a question waited."""

    async def show(self, event: Event) -> None:
        """Print what `event` adds; of a subagent, while a question waits, with the next one that is printed."""
        self._held.append(event)
        if not (self._waiting.is_open and isinstance(event, SubagentEvent)):
            await self._print_held()

    async def _print_held(self) -> None:
        held, self._held = self._held, []
        for event in held:
            await self._print(event)

    async def _print(self, event: Event) -> None:
        await self._answer.follow(event)
        for line in self._tool_lines.lines(event):
            await self._answer.break_line()
            await self._note(line)
        match event:
            case ToolResultMessage(display=DiffDisplay(files=files)):
                for file in files:
                    await self._diff(file.diff)
            case ToolResultMessage(display=ChecklistDisplay() | TableDisplay() as display):
                for row in display_rows(display, max(shutil.get_terminal_size().columns - 4, 8), _PLAIN):
                    await self._out.write(f"    {row}\n")
            case TurnEnded():
                await self._answer.end()
                took = " · ".join(part for part, _ in turn_summary(event, self._take_waited_s()))
                await self._note(f"[Interrupted] {took}" if event.is_interrupted else took)
            case _:
                pass

    async def show_past(self, messages: Sequence[Message]) -> None:
        """Print the last turns of a conversation that goes on, and how to see those before."""
        begin = beginning_of_last_turns(messages)
        if begin:
            await self._note(earlier(begin, "/export writes them"))
        await self.show_all(messages[begin:])

    async def show_all(self, messages: Sequence[Message]) -> None:
        for event in past_events(messages):
            if isinstance(event, UserMessage):
                await self.end()
                rows = user_message_lines(event, shutil.get_terminal_size().columns, _PLAIN)
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
        """The turn is over; what comes next stands on a line of its own."""
        await self._print_held()
        await self._answer.end()

    def _take_waited_s(self) -> float:
        """Return how long the user was waited for since this was last asked."""
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
