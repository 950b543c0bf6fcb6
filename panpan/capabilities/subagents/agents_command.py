"""/agents: which kinds of subagents there are, and which of them this session has had."""

from collections.abc import Collection, Sequence

from anyio import to_thread

from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.capabilities.subagents.host import SubagentHost
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.session.log.agent_log import AgentRecord, PastSubagents
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import AgentDefinition

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
    Command("agents", "Show the subagents: which there are, and which have run", _agents, is_immediate=True),
)
