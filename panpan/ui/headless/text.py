"""Text: the answer on standard output as it streams and nothing else; progress on a terminal's standard error."""

from collections.abc import Callable

from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta
from panpan.types.messages import AssistantMessage
from panpan.ui.answer_text import AnswerText
from panpan.ui.headless.face import HeadlessFace, TurnSummary
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
        self._note = note
        self._answer = AnswerText(out)
        self._tool_lines = ToolLines()

    async def show(self, event: Event) -> None:
        match event:
            case ReplyStarted() | BlockStarted(kind="text"):
                await self._answer.end_line()
            case TextDelta(text=text):
                await self._answer.add(text)
            case RetryScheduled():
                self._answer.retry()
            case AssistantMessage():
                self._answer.end()
            case _:
                pass
        if self._note is not None and (line := self._tool_lines.line(event)) is not None:
            await self._answer.end_line()
            self._note(line)

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        self._answer.end()
        await self._answer.end_line()
