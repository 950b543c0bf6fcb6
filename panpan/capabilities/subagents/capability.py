"""Subagents: further conversations that the model starts, and the copies of the project that some of them work in."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from anyio import to_thread

from panpan.capabilities.subagents.definitions.load import AgentDefinitions, load_definitions
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.subagents.report import results_of_subagents
from panpan.capabilities.subagents.runner import OwnReader, SubagentRunner
from panpan.capabilities.subagents.settings import AgentSettings
from panpan.capabilities.subagents.task import AgentMentioned, TaskTool
from panpan.capabilities.subagents.worktrees.merge_worktree import MergeWorktreeTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.session.context import SessionContext
from panpan.session.log.agent_log import AgentRecord, PastSubagents, SubagentEndRecord, SubagentRecord, agents_folder
from panpan.session.log.fold import UnfinishedCall
from panpan.session.reminders import ReminderSource
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import AgentDefinition
from panpan.types.messages import ToolResultMessage


class SubagentsCapability(Capability):
    """Starts subagents."""

    name = "subagents"
    record_types = (SubagentRecord, SubagentEndRecord)
    settings_model = AgentSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        setup, given = session.setup, session.config.options.get("agents")
        self.definitions = load_definitions(setup.loaded.places, given)
        for warning in self.definitions.warnings:
            session.warn(warning)
        self.host = SubagentHost(session, self.definitions)

    def services(self) -> Iterable[object]:
        past = PastSubagents(agents_folder(self.session.opened.log.path.parent, self.session.id))
        return self.definitions, self.host, past, OwnReader(self.host)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        yield TaskTool(SubagentRunner(self.host, agent))
        yield MergeWorktreeTool(partial(self.host.worktrees.merges, self.host.running.__contains__))

    def described(self) -> Mapping[str, Callable[[], object]]:
        return {"agents": lambda: list(self.definitions.names)}

    def unavailable(self) -> Iterable[str]:
        has_git = (self.session.setup.locations.project_root / ".git").exists()
        return () if has_git else (MergeWorktreeTool.name,)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (AgentMentioned(lambda: self.definitions.names),) if agent.is_main else ()

    def recover_result(self, call: UnfinishedCall) -> ToolResultMessage | None:
        log, session_id = self.session.opened.log, self.session.opened.forked_from or self.session.id
        return results_of_subagents(agents_folder(log.path.parent, session_id))(call)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(self.host.worktrees.tidy, self.host.serve, then=self.host.aclose):
            yield

    async def aclose(self) -> None:
        """Give the worktrees back, which language servers and commands have used until their end."""
        await self.host.worktrees.aclose()

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return AGENTS_COMMANDS


MAX_SHOWN = 30


async def _agents(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    definitions = await to_thread.run_sync(lambda: session[AgentDefinitions].all)
    if not definitions:
        say(terminal, "there are no subagents; a file agents/NAME.md defines one")
        return
    say(terminal, "The model may start these; @NAME in a prompt tells it to:", "strong")
    say_pairs(terminal, [(one.name, _told(one)) for one in definitions])
    records = await to_thread.run_sync(session[PastSubagents].records)
    if not records:
        say(terminal, "None has been started in this session.", "dim")
        return
    say(terminal, "This session has had:", "strong")
    if (hidden := len(records) - MAX_SHOWN) > 0:
        say(terminal, f"… {hidden:,} before these", "dim")
    running = session[SubagentHost].running
    say_pairs(terminal, [(record.id, _state(record, running)) for record in records[-MAX_SHOWN:]])


def _told(definition: AgentDefinition) -> str:
    model = "the session's model" if definition.model.name == "inherit" else definition.model.name
    tools = "all tools" if definition.access.tools is None else ", ".join(definition.access.tools) or "no tools"
    if definition.access.tools is None and definition.access.disallowed_tools:
        tools += f" but {', '.join(definition.access.disallowed_tools)}"
    lines = (definition.description, f"{model} · {tools}", f"from {definition.source}")
    return "\n".join(clean_line(line) for line in lines)


def _state(record: AgentRecord, running: Collection[str]) -> str:
    state = "runs" if record.id in running else record.end or "interrupted when panpan ended"
    worktree = f", in {record.worktree}" if record.worktree else ""
    return clean_line(f"{record.name}: {record.description} ({state}{worktree})")


AGENTS_COMMANDS: Sequence[Command] = (
    Command("agents", "List the subagents, and those that ran", _agents, is_immediate=True),
)
