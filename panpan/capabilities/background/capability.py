"""Background tasks: commands and subagents that go on beside the conversation."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from panpan.capabilities.background.background_tasks import BackgroundTasks, survivors
from panpan.capabilities.background.task_output import TaskOutputTool, TaskStopTool
from panpan.config.known_secrets import provider_keys
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, beside
from panpan.session.command import Command
from panpan.session.context import SessionContext
from panpan.system.processes.limits import process_watches
from panpan.text_search.engine import find_ripgrep
from panpan.types.content import StatusItem, text


class BackgroundCapability(Capability):
    """Keeps tasks, and tells the model of their ends."""

    name = "background"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        tools, locations = session.tool_context, session.setup.locations
        self.tasks = BackgroundTasks(
            session.settings.background,
            provider_keys(session.setup.env, session.settings),
            session.warn,
            folder=locations.tasks_folder / session.id,
            store=tools.outputs,
            messages=session.opened.before.messages,
            ripgrep=partial(find_ripgrep, tools.paths),
            is_held=session.gate.mode == "plan",
        )
        for sentence in survivors(locations.tasks_folder, locations.sessions_folder, but=session.id):
            session.warn(sentence)
        tools.sandbox.take_over(self.tasks.leavings)
        session.processes.append(self.tasks.tree)

    def offers(self) -> Iterable[object]:
        return (self.tasks,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return TaskOutputTool(self.tasks), TaskStopTool(self.tasks)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (self.tasks,) if agent.is_main else ()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        watches = process_watches(self.session.tool_context.limits, (self.tasks.tree,), self.session.warn)
        async with beside(self.tasks.serve, *watches, then=self._end):
            yield

    async def _end(self) -> None:
        """Stop what runs, or leave it and what it needs. A session that cannot go on leaves all as it found it."""
        keep = self.tasks.keeps or self.session.main.unfinished.have_stopped_a_turn
        await self.tasks.close(keep=keep, is_held=self.session.gate.mode == "plan")
        self.session.tool_context.sandbox.leave_behind(self.tasks.needed)

    def status(self) -> Iterable[StatusItem]:
        if count := len(self.tasks.running):
            yield text(f"{count} task{'s' * (count != 1)} running", "accent")

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.background.task_commands import TASK_COMMANDS

        return TASK_COMMANDS
