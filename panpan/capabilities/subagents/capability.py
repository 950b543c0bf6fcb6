"""Subagents: further conversations that the model starts, and the copies of the project that some of them work in."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from panpan.capabilities.subagents.agent_mentions import AgentMentioned
from panpan.capabilities.subagents.definitions.load import load_definitions
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.subagents.report import results_of_subagents
from panpan.capabilities.subagents.runner import SubagentRunner
from panpan.capabilities.subagents.settings import AgentSettings
from panpan.capabilities.subagents.task import TaskTool
from panpan.capabilities.subagents.worktrees.merge_worktree import MergeWorktreeTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, beside
from panpan.session.command import Command
from panpan.session.context import SessionContext
from panpan.session.log.agent_log import PastSubagents, SubagentEndRecord, SubagentRecord, agents_folder
from panpan.session.log.fold import UnfinishedCall
from panpan.session.reminders import ReminderSource
from panpan.system.files.canonical import user_home
from panpan.types.messages import ToolResultMessage


class SubagentsCapability(Capability):
    """Starts subagents."""

    name = "subagents"
    records = (SubagentRecord, SubagentEndRecord)
    settings_model = AgentSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        setup, locations = session.setup, session.setup.locations
        self.definitions = load_definitions(
            locations.project_root,
            setup.cwd,
            locations.home,
            user_home(),
            session.config.options.get("agents"),
            trust=setup.loaded.trust,
        )
        for warning in self.definitions.warnings:
            session.warn(warning)
        self.host = SubagentHost(session, self.definitions)

    def offers(self) -> Iterable[object]:
        past = PastSubagents(agents_folder(self.session.opened.log.path.parent, self.session.id))
        return self.definitions, self.host, past

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        yield TaskTool(SubagentRunner(self.host, agent))
        yield MergeWorktreeTool(partial(self.host.worktrees.merges, self.host.running.__contains__))

    def unavailable(self) -> Iterable[str]:
        has_git = (self.session.setup.locations.project_root / ".git").exists()
        return () if has_git else (MergeWorktreeTool.name,)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (AgentMentioned(lambda: self.definitions.names),) if agent.is_main else ()

    def known_result(self, call: UnfinishedCall) -> ToolResultMessage | None:
        log, session_id = self.session.opened.log, self.session.opened.forked_from or self.session.id
        return results_of_subagents(agents_folder(log.path.parent, session_id))(call)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        async with beside(self.host.worktrees.tidy, self.host.serve, then=self.host.aclose):
            yield

    async def aclose(self) -> None:
        """Give the worktrees back, which language servers and commands have used until their end."""
        await self.host.worktrees.aclose()

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.subagents.agents_command import AGENTS_COMMANDS

        return AGENTS_COMMANDS
