"""Logs of subagents: a file each, in a folder beside that of the session, and what was said and done in them."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from panpan.errors import SessionError
from panpan.session.log.record_kinds import SystemRecord, Text
from panpan.session.log.records import message_of
from panpan.session.log.session_log import read_records
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message
from panpan.types.pattern import compile_late

_ID = compile_late(r"[0-9a-f]{8}")

AgentEnd: TypeAlias = Literal["done", "failed", "stopped"]
"""Outcome of a subagent's turn; `stopped` is by the user, or by the agent that started it."""


class SubagentRecord(SystemRecord):
    """A subagent was begun, or gone on with."""

    subtype: Literal["subagent"] = "subagent"
    agent_id: str
    agent_type: str
    description: Text = ""
    tool_use_id: Text = ""
    worktree: Text = ""
    parent_agent_id: Text = ""


class SubagentEndRecord(SystemRecord):
    """The turn of a subagent is over."""

    subtype: Literal["subagent_end"] = "subagent_end"
    outcome: AgentEnd


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """Record of how a subagent was begun."""

    id: str
    name: str
    """Name of its definition."""
    description: str
    tool_use_id: str
    """The call that started it, or went on with it last."""
    worktree: str = ""
    """The copy of the project that it works in; empty if it has none."""
    parent: str = ""
    """Id of the subagent whose call that was; empty for the session's own model."""
    end: AgentEnd | None = None
    """Outcome of its last turn, which the log has in a record of its own; None if the turn runs, or panpan ended
    first."""

    @property
    def label(self) -> str:
        """Name for people, such as "explore: find the loss"."""
        return f"{self.name}: {self.description}"

    def as_record(self) -> dict[str, Any]:
        return SubagentRecord(
            agent_id=self.id,
            agent_type=self.name,
            description=self.description,
            tool_use_id=self.tool_use_id,
            worktree=self.worktree,
            parent_agent_id=self.parent,
        ).as_json()


def new_agent_id() -> str:
    """Return an id that no subagent has."""
    return secrets.token_hex(4)


def agents_folder(sessions_folder: Path, session_id: str) -> Path:
    """Return where the logs of a session's subagents lie."""
    return sessions_folder / session_id / "subagents"


def agent_log_path(folder: Path, agent_id: str) -> Path | None:
    """Return the log of a subagent, whether there is one or not; None if it can have no such id."""
    return folder / f"agent-{agent_id}.jsonl" if _ID.fullmatch(agent_id) else None


def agent_logs(folder: Path) -> list[Path]:
    """Return the logs of a session's subagents, oldest first."""
    return sorted(folder.glob("agent-*.jsonl"), key=_begun_at)


def agent_records(folder: Path) -> Iterator[AgentRecord]:
    """Yield how each subagent of a session was begun, oldest first; logs that cannot be read are passed over."""
    for path in agent_logs(folder):
        with suppress(SessionError):
            if (record := agent_record(path)) is not None:
                yield record


def agent_record(path: Path) -> AgentRecord | None:
    """Return the beginning or latest resumption of the subagent of a log, and its end; None if the log does not say."""
    last: AgentRecord | None = None
    for record in read_records(path, only=lambda line: b'"subagent' in line):
        if (begun := begun_by(record)) is not None:
            last = begun
        elif last is not None and (end := SubagentEndRecord.read(record)) is not None:
            last = replace(last, end=end.outcome)
    return last


def begun_by(record: Mapping[str, Any]) -> AgentRecord | None:
    """Return what a record of a log says of how the subagent was begun, or gone on with; None for other records."""
    said = SubagentRecord.read(record) if record.get("subtype") == "subagent" else None
    if said is None or not _ID.fullmatch(said.agent_id):
        return None
    return AgentRecord(
        said.agent_id, said.agent_type, said.description, said.tool_use_id, said.worktree, said.parent_agent_id
    )


def _begun_at(path: Path) -> float:
    try:
        return path.stat().st_ctime
    except OSError:
        return 0.0


MAX_MESSAGES = 500
"""Most messages that are returned for one turn; earlier ones are in the log."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn of a subagent."""

    agent_id: str
    begun_at: str
    """Time of its beginning as written in its log; it sorts as text."""
    number: int
    """Number of the turn in its log, from 1."""
    path: Path

    def messages(self) -> Sequence[Message]:
        """Return what was said in it, the newest last; reads the log."""
        messages: list[Message] = []
        with suppress(SessionError):
            messages += self._messages()
        return messages[-MAX_MESSAGES:]

    def _messages(self) -> Iterator[Message]:
        number = 0
        for record in read_records(self.path):
            if begun_by(record) is not None:
                number += 1
            elif number == self.number and (message := message_of(record)) is not None:
                yield message


class PastTurns:
    """The turns of the subagents whose logs lie in a folder, by the calls that began them, as they are now."""

    def __init__(self, folder: Path) -> None:
        found = [one for path in folder.glob("agent-*.jsonl") for one in _turns_in(path)]
        self._turns = dict(sorted(found, key=lambda one: one[1].begun_at))

    def take(self, tool_use_id: str, *, of: str = "") -> PastTurn | None:
        """Return the turn that a call of a subagent, or of the session's own model, began; None if unknown or taken.

        Ids are those of one conversation: a subagent may have calls of the same id as its session. Of two that the
        same agent made, the first was taken back. None is told in a circle, whatever the logs say.
        """
        return self._turns.pop((of, tool_use_id), None)


def _turns_in(path: Path) -> Sequence[tuple[tuple[str, str], PastTurn]]:
    """Return each turn in a log, behind who made the call that began it, and its id."""
    found: list[tuple[tuple[str, str], PastTurn]] = []
    with suppress(SessionError):
        for record in read_records(path, only=lambda line: b'"subagent"' in line):
            if (begun := begun_by(record)) is not None:
                turn = PastTurn(begun.id, str(record.get("timestamp", "")), len(found) + 1, path)
                found.append(((begun.parent, begun.tool_use_id), turn))
    return found


class PastSubagents:
    """The subagents that a session has had; the folder of their logs need not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def turns(self) -> PastTurns:
        """Return what they said and did so far; reads files."""
        return PastTurns(self._folder)

    def records(self) -> Sequence[AgentRecord]:
        """Return how each was begun, or last gone on with, and how that ended, the oldest first; reads files."""
        return list(agent_records(self._folder))
