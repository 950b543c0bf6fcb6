"""Plan mode: its tools, the plan, and the notices about it for agents."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from panpan.capabilities.plan_mode.plan_mode import PlanMode, PlanNotice
from panpan.capabilities.plan_mode.plan_mode_tools import EnterPlanModeTool, ExitPlanModeTool
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.context import SessionContext


class PlanModeCapability(Capability):
    """Lets the model plan before anything is changed."""

    name = "plan_mode"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        before, gate = session.opened.before, session.gate
        self.mode = PlanMode(
            gate,
            session.setup.locations.plans_folder,
            session.tool_context.seen_files,
            session.warn,
            note=session.recorder.record_decision,
            holds=session.processes,
        )
        if before.plan_file is not None:
            self.mode.restore(before.plan_file, is_approved=before.is_plan_approved)
        gate.subscribe(self.mode.mode_changed)
        self.mode.mode_changed(gate.mode)  # stop what a crashed session left running in plan mode

    def services(self) -> Iterable[object]:
        return (self.mode,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        frontend = self.session.frontend
        ask, stop = frontend.askers.plan, frontend.stop
        exit_ = ExitPlanModeTool(
            self.mode, stop.plan if ask is None and stop is not None else ask, has_user=ask is not None
        )
        return EnterPlanModeTool(self.mode, has_user=ask is not None), exit_

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self.mode,) if agent.is_main else (PlanNotice(lambda: agent.gate.mode),)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(self.mode.keep_held):
            yield
