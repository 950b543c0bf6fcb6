"""TaskStop: end a background task with all that it started."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from panpan.errors import ToolError
from panpan.tools.tasks.background import Background
from panpan.tools.tasks.task_output import NO_TASKS
from panpan.tools.tasks.task_text import state_line
from panpan.tools.tool import Tool, ToolClass, ToolContext
from panpan.types.display import SummaryDisplay
from panpan.types.tool import Output, ToolYield


class TaskStopInput(BaseModel):
    """What the model may ask of TaskStop."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_id: str = Field(min_length=1, max_length=64)


class TaskStopTool(Tool[TaskStopInput]):
    """End a background task. It changes no file, and several may be ended at the same time.

    Args:
        background: Those of the session; None where there are none.
    """

    name = "TaskStop"
    input_model = TaskStopInput
    tool_class: ClassVar[ToolClass] = "read"
    timeout_s: ClassVar[float | None] = None

    def __init__(self, background: Background | None = None) -> None:
        self._background = background

    def is_read_only(self, args: TaskStopInput) -> bool:
        return True

    def title(self, args: TaskStopInput) -> str:
        return args.task_id

    async def run(self, args: TaskStopInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if self._background is None:
            raise ToolError(NO_TASKS)
        line = state_line(await self._background.stop(args.task_id))
        yield Output(line, SummaryDisplay(text=line))
