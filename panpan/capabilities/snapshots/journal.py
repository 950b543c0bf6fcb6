"""The records of snapshots in a session's log: written by whoever took them, and read back as what can be undone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.capabilities.snapshots.history import MAX_FILES_IN_RECORD, Cause, SnapshotRecord, Trees, UndoHistory
from panpan.errors import SessionError
from panpan.session.log import read_records
from panpan.types.file_change import FileChange

_MARKS = (b'"subtype":"snapshot"', b'"type":"user"')
_RESULT = b'"type":"tool_result"'
"""In each record of a result, as `records.encoded` writes it; in text its quotes would be escaped."""


class SnapshotJournal:
    """The records of snapshots in a session's log.

    Args:
        path: The log; may not exist yet.
        note: Writes a record into it.
    """

    def __init__(self, path: Path, note: Callable[[Mapping[str, Any]], None]) -> None:
        self.path = path
        self.note = note
        self.came_back = False
        """Whether files were brought back since the model was last told."""

    async def history(self) -> UndoHistory:
        """Return what was changed in the session, and what can be undone.

        Raises:
            SessionError: The log cannot be read.
        """
        return await to_thread.run_sync(lambda: UndoHistory(self._records()))

    async def others(self, since: str) -> Sequence[UndoHistory]:
        """Return what was changed in the other sessions of the project that have done something lately.

        Args:
            since: When that begins, as a record says it.
        """
        return await to_thread.run_sync(self._others, since)

    def add(
        self,
        cause: Cause,
        before: Trees,
        after: Trees | None,
        *,
        since: str = "",
        turn: str = "",
        files: Sequence[FileChange] = (),
    ) -> None:
        """Record what was there before something that changes files, and after it.

        Args:
            cause: Why they change.
            before: Snapshots by folder.
            after: None: it begins now.
            since: When the look at what was there before began, as a record says it; empty: now.
            turn: `uuid` of the message that began the turn.
            files: What became of each file.
        """
        said: dict[str, Any] = {}
        if after is not None:
            named = [change.as_json() for change in files[:MAX_FILES_IN_RECORD]]
            said = {"after": dict(after), "files": named, "file_count": len(files)}
        self.note(SnapshotRecord(cause=cause, turn_uuid=turn, before=dict(before), since=since, **said).as_json())

    def _others(self, since: str) -> Sequence[UndoHistory]:
        found = []
        for log in self.path.parent.glob(f"*{self.path.suffix}"):
            with suppress(SessionError, OSError, ValueError):
                if log != self.path and log.stat().st_mtime >= datetime.fromisoformat(since).timestamp():
                    found.append(UndoHistory(read_records(log, only=lambda line: _MARKS[0] in line)))
        return found

    def _records(self) -> Iterator[Mapping[str, Any]]:
        if not self.path.exists():
            return iter(())
        return read_records(self.path, only=_is_about_files)


def _is_about_files(line: bytes) -> bool:
    """Return whether a line may be one that a history is made of; the others need not be parsed."""
    return any(mark in line for mark in _MARKS) and _RESULT not in line
