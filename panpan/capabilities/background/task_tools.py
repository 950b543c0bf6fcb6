"""TaskOutput and TaskStop: how a background task is doing, what it printed since the last look, and its end.

The rule: the first line of a result is that of the task.
"""

from collections.abc import AsyncGenerator
from typing import ClassVar

from pydantic import Field

from panpan.capabilities.background.announcements import state_line
from panpan.core.background import Background
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.types.content import Frozen, SummaryDisplay
from panpan.types.events import Output, ToolYield

MAX_RESULT_BYTES = 32 * 1024
MAX_TIMEOUT_MS = 600_000
MAX_PATTERN_CHARS = 1000
_WAITING_MS = 1000
"""A call that waits for less may be one of a model that runs in circles."""


class TaskOutputInput(Frozen):
    """Arguments of TaskOutput."""

    task_id: str = Field(min_length=1, max_length=64)
    block: bool = Field(default=True, description="Wait for its end")
    timeout: int = Field(default=30_000, ge=0, le=MAX_TIMEOUT_MS, description="Milliseconds to wait")
    filter: str | None = Field(
        default=None, min_length=1, max_length=MAX_PATTERN_CHARS, description="Regex: all lines that match, numbered"
    )


class TaskOutputTool(Tool[TaskOutputInput]):
    """Look at a background task."""

    name = "TaskOutput"
    input_model = TaskOutputInput
    question_template = "Read the output of the task {title}?"
    only_reads: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None

    def __init__(self, background: Background) -> None:
        self._background = background

    def may_be_repeated(self, args: TaskOutputInput) -> bool:
        return args.block and args.timeout >= _WAITING_MS

    def title(self, args: TaskOutputInput) -> str:
        return args.task_id

    def time_limit_s(self, args: TaskOutputInput) -> float | None:
        return args.timeout / 1000 if args.block else None

    async def effects(self, args: TaskOutputInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: TaskOutputInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        info = await self._background.wait(args.task_id, args.timeout / 1000 if args.block else 0)
        output = await self._background.read(info.id, pattern=args.filter, max_bytes=MAX_RESULT_BYTES)
        what = "matching" if args.filter else "new"
        text = output.text.rstrip("\n") or f"(nothing {what})"
        head = [state_line(info), f"[all of its output: {output.path}]"]
        if output.is_cut:
            head.append(f"[only the end of what is {what}]")
        yield Output("\n".join([*head, text]), SummaryDisplay(text=state_line(info)))


class TaskStopInput(Frozen):
    """Arguments of TaskStop."""

    task_id: str = Field(min_length=1, max_length=64)


class TaskStopTool(Tool[TaskStopInput]):
    """End a background task. It changes no file, and several may be ended at the same time."""

    name = "TaskStop"
    input_model = TaskStopInput
    question_template = "Stop the task {title}?"
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
