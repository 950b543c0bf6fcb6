"""The records of snapshots in a session's log: written by whoever took them, and read back as what can be undone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.services.sessions.log import read_records
from panpan.services.sessions.records import snapshot_record
from panpan.services.snapshots.history import Cause, Trees, UndoHistory
from panpan.types.file_change import FileChange

_MARKS = (b'"subtype":"snapshot"', b'"type":"user"')
_RESULT = b'"type":"tool_result"'
"""In each record of a result, as `records.encoded` writes it; in text its quotes would be escaped."""


class SnapshotJournal:
    """What a session's log says of its files."""

    def __init__(self) -> None:
        self.path: Path | None = None
        """The log; may not exist yet."""
        self.note: Callable[[Mapping[str, Any]], None] = lambda record: None
        """Writes a record into it."""
        self.came_back = False
        """Whether files were brought back since the model was last told."""

    async def history(self) -> UndoHistory:
        """Return what was changed in the session, and what can be undone.

        Raises:
            SessionError: The log cannot be read.
        """
        return await to_thread.run_sync(lambda: UndoHistory(self._records()))

    def add(
        self, cause: Cause, before: Trees, after: Trees | None, *, turn: str = "", files: Sequence[FileChange] = ()
    ) -> None:
        """Record what was there before something that changes files, and after it.

        Args:
            cause: Why they change.
            before: Snapshots by folder.
            after: None: it begins now.
            turn: `uuid` of the message that began the turn.
            files: What became of each file.
        """
        self.note(snapshot_record(cause, before, after, turn=turn, files=files))

    def _records(self) -> Iterator[Mapping[str, Any]]:
        if self.path is None or not self.path.exists():
            return iter(())
        return read_records(self.path, only=_is_about_files)


def _is_about_files(line: bytes) -> bool:
    """Return whether a line may be one that a history is made of; the others need not be parsed."""
    return any(mark in line for mark in _MARKS) and _RESULT not in line
