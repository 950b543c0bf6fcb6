"""What the subagents of a session said and did, read from their logs when it is asked for.

Nothing of it is kept in memory: a hundred subagents may have said more than their session.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import SessionError
from panpan.session.agent_log import AgentRecord, agent_records, begun_by
from panpan.session.log import read_records
from panpan.session.records import message_of
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message

MAX_MESSAGES = 500
"""Told of one call; those before are in the log."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn of a subagent."""

    agent_id: str
    begun_at: str
    """As its log says it; the later, the greater."""
    number: int
    """Of the turn in its log, from 1."""
    path: Path
    """Its log."""

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
    """The turns of subagents, by the calls that began them, as they are when this is made.

    Args:
        folder: Where their logs lie.
    """

    def __init__(self, folder: Path) -> None:
        found = [one for path in folder.glob("agent-*.jsonl") for one in _turns_in(path)]
        self._turns = dict(sorted(found, key=lambda one: one[1].begun_at))

    def take(self, tool_use_id: str, *, of: str = "") -> PastTurn | None:
        """Return the turn that a call began; None where none is known, or it was taken before.

        Ids are those of one conversation: a subagent may have calls of the same id as its session. Of two that the
        same agent made, the first was taken back. None is told in a circle, whatever the logs say.

        Args:
            tool_use_id: The call.
            of: Id of the subagent that made it; empty: the session's own model.
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
    """The subagents that a session has had.

    Args:
        folder: Where their logs lie; need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def turns(self) -> PastTurns:
        """Return what they said and did so far; reads files."""
        return PastTurns(self._folder)

    def records(self) -> Sequence[AgentRecord]:
        """Return how each was begun, or last gone on with, and how that ended, the oldest first; reads files."""
        return list(agent_records(self._folder))
