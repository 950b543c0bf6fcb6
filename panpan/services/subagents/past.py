"""What the subagents of a session said and did, read from their logs when it is asked for.

Nothing of it is kept in memory: a hundred subagents may have said more than their session.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import SessionError
from panpan.services.sessions.log import read_records
from panpan.services.sessions.records import message_of
from panpan.services.subagents.agent_log import AgentRecord, agent_records, begun_by, begun_in
from panpan.types.messages import Message

MAX_MESSAGES = 500
"""Told of one call; those before are in the log."""


class PastTurns:
    """The turns of subagents, by the calls that began them, as they are when this is made.

    Args:
        folder: Where their logs lie.
    """

    def __init__(self, folder: Path) -> None:
        self._paths: dict[str, Path] = {}
        for path in sorted(folder.glob("agent-*.jsonl")):
            with suppress(SessionError):
                self._paths.update((record.tool_use_id, path) for record in begun_in(path))

    def take(self, tool_use_id: str) -> Sequence[Message]:
        """Return what was said in the turn that a call began, the newest last; nothing where none is known, or again.

        Each is told once, so that calls of the same id, as models may give them, cannot lead in a circle.
        """
        path = self._paths.pop(tool_use_id, None)
        if path is None:
            return ()
        messages: list[Message] = []
        with suppress(SessionError):
            messages += self._messages_in(path, tool_use_id)
        return messages[-MAX_MESSAGES:]

    def _messages_in(self, path: Path, tool_use_id: str) -> Iterator[Message]:
        is_meant = False
        for record in read_records(path):
            if (begun := begun_by(record)) is not None:
                is_meant = begun.tool_use_id == tool_use_id
            elif is_meant and (message := message_of(record)) is not None:
                yield message


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
