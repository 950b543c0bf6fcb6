"""Logs of subagents, as a session leaves them."""

from pathlib import Path

from panpan.session.log.agent_log import AgentEnd, AgentRecord, SubagentEndRecord, agent_log_path
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.types.messages import Message


def keep_turn(
    folder: Path,
    agent_id: str,
    call: str,
    *messages: Message,
    name: str = "explore",
    description: str = "find it",
    parent: str = "",
    end: AgentEnd | None = None,
) -> None:
    """Append a turn, started by a call, to the log of a subagent."""
    path = agent_log_path(folder, agent_id)
    assert path is not None
    log = SessionLog(path, session_id="s1", cwd=folder)
    log.append(AgentRecord(agent_id, name, description, call, parent=parent).as_record())
    for message in messages:
        log.append(record_of(message))
    if end is not None:
        log.append(SubagentEndRecord(outcome=end).as_json())
    log.close()
