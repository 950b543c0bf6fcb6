"""Text: the answer on standard output as it streams and nothing else; progress on a terminal's standard error."""

from collections.abc import Callable

from panpan.system.terminal_text import clean_for_terminal
from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta
from panpan.types.messages import AssistantMessage
from panpan.ui.answer_text import AnswerText
from panpan.ui.headless.face import HeadlessFace, TurnRecord
from panpan.ui.headless.outcome import Outcome
from panpan.ui.stdout import StdoutWriter
from panpan.ui.tool_lines import ToolLines


class TextFace(HeadlessFace):
    """Prints the text of the replies.

    Args:
        out: Standard output.
        note: Prints one line of progress; None where there is no terminal for it.
    """

    def __init__(self, out: StdoutWriter, note: Callable[[str], None] | None) -> None:
        self._out = out
        self._note = note
        self._answer = AnswerText()
        self._tool_lines = ToolLines()
        self._ends_line = True

    async def begin(self) -> None:
        pass

    async def show(self, event: Event) -> None:
        match event:
            case ReplyStarted() | BlockStarted(kind="text"):
                await self._end_line()
            case TextDelta(text=text):
                await self._print(*self._answer.new_part(text))
            case RetryScheduled():
                self._answer.retry()
            case AssistantMessage():
                self._answer.end()
            case _:
                pass
        if self._note is not None and (line := self._tool_lines.line(event)) is not None:
            await self._end_line()
            self._note(line)

    async def end(self, record: TurnRecord, outcome: Outcome, duration_s: float) -> None:
        self._answer.end()
        await self._end_line()

    async def _print(self, text: str, starts_anew: bool) -> None:
        if starts_anew:
            await self._end_line()
        if text:
            await self._out.write(clean_for_terminal(text) if self._out.is_terminal else text)
            self._ends_line = text.endswith("\n")

    async def _end_line(self) -> None:
        """Put what comes next on a line of its own; not while a reply that failed may still be continued."""
        if not self._ends_line and not self._answer.is_catching_up:
            self._ends_line = True
            await self._out.write("\n")
