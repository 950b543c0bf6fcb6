"""TaskStop: end a background task with all that it started."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from pydantic import Field

from panpan.capabilities.background.announcements import state_line
from panpan.core.background import Background
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.types.content import Frozen
from panpan.types.display import SummaryDisplay
from panpan.types.events import Output, ToolYield


class TaskStopInput(Frozen):
    """Arguments of TaskStop."""

    task_id: str = Field(min_length=1, max_length=64)


class TaskStopTool(Tool[TaskStopInput]):
    """End a background task. It changes no file, and several may be ended at the same time."""

    name = "TaskStop"
    input_model = TaskStopInput
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None

    def __init__(self, background: Background) -> None:
        self._background = background

    def title(self, args: TaskStopInput) -> str:
        return args.task_id

    async def effects(self, args: TaskStopInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: TaskStopInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        line = state_line(await self._background.stop(args.task_id))
        yield Output(line, SummaryDisplay(text=line))
