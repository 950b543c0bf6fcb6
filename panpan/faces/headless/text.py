"""Text: the answer on standard output as it streams and nothing else; progress on a terminal's standard error."""

from collections.abc import Callable

from panpan.capabilities.background.background import TaskInfo
from panpan.capabilities.background.task_text import ended_line
from panpan.cli_kit.stdout import StdoutWriter
from panpan.faces.answer_text import AnswerText
from panpan.faces.headless.face import HeadlessFace, TurnSummary
from panpan.faces.headless.outcome import Outcome
from panpan.faces.tool_lines import ToolLines
from panpan.types.display import PlanDisplay
from panpan.types.events import CommandRan, Event
from panpan.types.messages import ToolResultMessage


class TextFace(HeadlessFace):
    """Prints the text of the replies, and a plan that is the result of the run.

    Args:
        out: Standard output.
        note: Prints one line of progress; None where there is no terminal for it.
    """

    def __init__(self, out: StdoutWriter, note: Callable[[str], None] | None) -> None:
        self._note = note
        self._answer = AnswerText(out)
        self._tool_lines = ToolLines()

    async def show(self, event: Event) -> None:
        await self._answer.follow(event)
        match event:
            case ToolResultMessage(display=PlanDisplay(is_result=True, text=text)) | CommandRan(text=text):
                await self._answer.add_whole(text)
            case _:
                pass
        if self._note is not None:
            for line in self._tool_lines.lines(event):
                await self._answer.make_room()
                self._note(line)

    async def task_ended(self, task: TaskInfo) -> None:
        if self._note is not None:
            await self._answer.make_room()
            self._note(ended_line(task))

    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        await self._answer.end()
