"""Where the conversations of subagents are kept: a log each, in a folder beside that of the session."""

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from panpan.errors import SessionError
from panpan.services.sessions.log import read_records
from panpan.types.dataclass import dataclass
from panpan.types.ids import new_id

_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """How a subagent was begun."""

    id: str
    name: str
    """Of its definition."""
    description: str
    tool_use_id: str
    """The call that started it, or went on with it last."""
    worktree: str = ""
    """The copy that it works in; empty where it has none."""
    parent: str = ""
    """Id of the subagent whose call that was; empty: the session's own model."""

    def as_record(self) -> dict[str, Any]:
        """Return it for the log."""
        return {
            "type": "system",
            "subtype": "subagent",
            "uuid": new_id(),
            "agentId": self.id,
            "agentType": self.name,
            "description": self.description,
            "toolUseId": self.tool_use_id,
            "worktree": self.worktree,
            "parentAgentId": self.parent,
        }


def new_agent_id() -> str:
    """Return an id that no subagent has."""
    return secrets.token_hex(4)


def agents_folder(sessions_folder: Path, session_id: str) -> Path:
    """Return where the logs of a session's subagents lie."""
    return sessions_folder / session_id / "subagents"


def agent_log_path(folder: Path, agent_id: str) -> Path | None:
    """Return the log of a subagent, whether there is one or not; None where it can have no such id."""
    return folder / f"agent-{agent_id}.jsonl" if _ID.fullmatch(agent_id) else None


def agent_records(folder: Path) -> Iterator[AgentRecord]:
    """Yield how each subagent of a session was begun, oldest first; logs that cannot be read are passed over."""
    for path in sorted(folder.glob("agent-*.jsonl"), key=_begun_at):
        with suppress(SessionError):
            if (record := agent_record(path)) is not None:
                yield record


def agent_record(path: Path) -> AgentRecord | None:
    """Return how the subagent of a log was begun, or last gone on with; None where it does not say.

    Raises:
        SessionError: It cannot be read.
    """
    return next(iter(reversed(list(begun_in(path)))), None)


def begun_in(path: Path) -> Iterator[AgentRecord]:
    """Yield what the log of a subagent says of its beginning, and of each time that it was gone on with.

    Raises:
        SessionError: It cannot be read.
    """
    for record in read_records(path, only=lambda line: b'"subagent"' in line):
        if (begun := begun_by(record)) is not None:
            yield begun


def begun_by(record: Mapping[str, Any]) -> AgentRecord | None:
    """Return what a record of a log says of how the subagent was begun, or gone on with; None for other records."""
    match record:
        case {"subtype": "subagent", "agentId": str(id_), "agentType": str(name)} if _ID.fullmatch(id_):
            texts = (str(record.get(key) or "") for key in ("description", "toolUseId", "worktree", "parentAgentId"))
            return AgentRecord(id_, name, *texts)
        case _:
            return None


def _begun_at(path: Path) -> float:
    try:
        return path.stat().st_ctime
    except OSError:
        return 0.0
