"""EnterPlanMode: look and plan first, where the way is not clear."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from panpan.capabilities.plan_mode.exit_plan_mode import Planning
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.types.content import Frozen
from panpan.types.display import SummaryDisplay
from panpan.types.events import Output, ToolYield

NOBODY_THERE = "nobody is there to approve a plan, so plan mode would be the end of the work: go on with the task"


class EnterPlanModeInput(Frozen):
    """EnterPlanMode takes no arguments."""


class EnterPlanModeTool(Tool[EnterPlanModeInput]):
    """Switch plan mode on. It only takes permissions away, so nobody is asked."""

    name = "EnterPlanMode"
    input_model = EnterPlanModeInput
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False

    def __init__(self, planning: Planning, *, has_user: bool) -> None:
        self._planning = planning
        self._has_user = has_user

    @property
    def is_advertised(self) -> bool:
        return self._has_user

    def title(self, args: EnterPlanModeInput) -> str:
        return ""

    async def effects(self, args: EnterPlanModeInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: EnterPlanModeInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if self._planning.is_on:
            raise ToolError("plan mode is on already: look around, then put your plan to the user with ExitPlanMode")
        if not self._has_user:
            raise ToolError(NOBODY_THERE)
        file = await self._planning.begin()
        yield Output(f"Plan mode is on. The plan file is {file}.", SummaryDisplay(text=f"the plan file is {file}"))
