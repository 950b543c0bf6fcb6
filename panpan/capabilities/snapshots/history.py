"""Changes of a session's files, in order, and what can be undone and redone of them: a fold over its log.

The rule: the files have one past, whatever branches the conversation has, so every record counts in the order in which
it was written. Nothing that the log says is done without being shown; it may have been tampered with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from anyio import to_thread
from pydantic import Field

from panpan.errors import SessionError
from panpan.session.log.record_kinds import SystemRecord, Text, Yes, default_if_invalid, is_none
from panpan.session.log.session_log import read_records
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange
from panpan.types.pattern import compile_late

Cause: TypeAlias = Literal["turn", "undo", "redo", "rewind"]
"""Cause of a change: what the model did in a turn, or one of the ways back."""

Trees: TypeAlias = Mapping[str, str]
"""The id of a snapshot for each folder."""

MAX_FILES_IN_RECORD = 200
"""Most changed files that a record names; how many there were it says in any case."""

_ID = compile_late(r"[0-9a-f]{40}|[0-9a-f]{64}")


Ids: TypeAlias = Annotated[dict[str, str] | None, default_if_invalid(None)]


class SnapshotRecord(SystemRecord):
    """The files before something that changes them, and after it."""

    subtype: Literal["snapshot"] = "snapshot"
    cause: Cause
    turn_uuid: Text = Field("", exclude_if=lambda uuid: not uuid)
    """Id of the message that began the turn; empty for what is no turn."""
    before: Ids
    """Ids of snapshots, by folder."""
    after: Ids = Field(None, exclude_if=is_none)
    """The same; None: it begins now."""
    files: Annotated[list[dict[str, Any]] | None, default_if_invalid(None)] = Field(None, exclude_if=is_none)
    """Change of each file, of the first `MAX_FILES_IN_RECORD`."""
    file_count: Annotated[int | None, default_if_invalid(None)] = Field(None, exclude_if=is_none)
    adds_files: Yes = Field(False, exclude_if=lambda adds: not adds)
    """True if it is the change that has begun, and is about more files now."""
    since: Text = Field("", exclude_if=lambda time: not time)
    """Time when the look at what was there before began; empty: when the record was written."""


@dataclass(frozen=True, slots=True)
class Step:
    """The files before and after something."""

    before: Trees
    after: Trees
    """Empty: it has not ended."""
    began: str = field(default="", compare=False)
    """Time, as a record says it, which sorts."""
    ended: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """Steps that are undone at once."""

    cause: Cause
    turn: str
    """`uuid` of the message that began the turn, or that it followed, where the user said none; empty for no turn."""
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class _Change:
    cause: Cause
    turn: str
    before: Trees
    began: str
    ended: str = ""
    after: Trees | None = None
    """None: it has not ended, or a crash came between."""

    @property
    def step(self) -> Step:
        return Step(self.before, self.after or {}, self.began, self.ended)


class UndoHistory:
    """The operations of a session, whose log has these records, in their order."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._events: list[str | _Change] = []
        """User messages by their `uuid`, and changes, as they came."""
        self._open: _Change | None = None
        self._undoable: list[Operation] = []
        self._undone: list[Operation] = []
        for record in records:
            self.add(record)

    @property
    def undoable(self) -> Operation | None:
        """The operation that would be undone next."""
        return self._undoable[-1] if self._undoable else None

    @property
    def undone(self) -> Operation | None:
        """The operation that was undone last, and would be done again."""
        return self._undone[-1] if self._undone else None

    @property
    def opened(self) -> Trees | None:
        """The files before a change that has not ended, or that a crash cut off; None: there is none."""
        return self._open.before if self._open else None

    @property
    def came_back(self) -> bool:
        """True if files were brought back between the last two messages of the user, or since the last."""
        messages = [index for index, event in enumerate(self._events) if isinstance(event, str)]
        newest = self._events[messages[-2] if len(messages) > 1 else 0 :]
        return any(isinstance(event, _Change) and event.cause != "turn" for event in newest)

    def add(self, record: Mapping[str, Any]) -> None:
        """Take note of a record of the log."""
        match record:
            case {"type": "user", "uuid": str(uuid), "message": {"content": [{"type": kind}, *_]}}:
                if kind != "tool_result":
                    self._events.append(uuid)
            case {"type": "system", "subtype": "snapshot"}:
                snapshot, time = SnapshotRecord.read(record), str(record.get("timestamp") or "")
                if snapshot is not None and (trees := _trees(snapshot.before)) is not None:
                    change = _Change(snapshot.cause, snapshot.turn_uuid, trees, snapshot.since or time)
                    if snapshot.adds_files and self._open is not None:
                        self._open.before = trees
                    else:
                        self._add(change, _trees(snapshot.after), time)
            case _:
                pass

    def close(self, after: Trees, time: str = "") -> None:
        """End an open change with `after` as its result; `time` is when that was taken, or empty for now."""
        if (change := self._open) is None:
            return
        self._open = None
        if after == change.before:
            self._events = [event for event in self._events if event is not change]
            if change.cause in ("undo", "redo"):  # nothing had to change, so skip this entry and undo the one before it
                del (self._undoable if change.cause == "undo" else self._undone)[-1:]
        else:
            change.after, change.ended = after, time
            self._place(change.cause, change.turn, change.step)

    def steps_since(self, uuid: str) -> Sequence[Step]:
        """Return every step since a message of the user, the oldest first; raise `KeyError` if there is none such."""
        if uuid not in self._events:
            raise KeyError(uuid)
        events = self._events[self._events.index(uuid) :]
        return [one.step for one in events if isinstance(one, _Change) and one.after is not None]

    def steps_during(self, step: Step) -> Sequence[Step]:
        """Return the steps that were under way, if only for a moment, while another session made one."""
        ours = [event.step for event in self._events if isinstance(event, _Change)]
        return [one for one in ours if _is_after(step.ended, one.began) and _is_after(one.ended, step.began)]

    def _add(self, change: _Change, after: Trees | None, time: str) -> None:
        if self._open is not None:
            is_its_end = after is not None and (change.cause, change.before) == ("turn", self._open.before)
            self.close(after if is_its_end and after is not None else change.before, time)
            if is_its_end:
                return
        if after is None and change.cause != "turn":
            return
        self._open = change
        self._events.append(change)
        if after is not None:
            self.close(after, time)

    def _place(self, cause: Cause, turn: str, step: Step) -> None:
        newest = self.undoable
        if cause == "turn" and turn and newest is not None and newest.turn == turn:
            newest.steps.append(step)
            self._undone.clear()
            return
        operation = Operation(cause, turn, [step])
        taken, given = (self._undoable, self._undone) if cause == "undo" else (self._undone, self._undoable)
        if cause in ("undo", "redo"):
            del taken[-1:]
        else:
            taken.clear()
        given.append(operation)


def _is_after(ended: str, began: str) -> bool:
    """True if something ended after something else began, or in the same moment; what has no end goes on."""
    return not ended or ended >= began


def _trees(value: Trees | None) -> Trees | None:
    return value if value and all(map(_ID.fullmatch, value.values())) else None


_MARKS = (b'"subtype":"snapshot"', b'"type":"user"')
_RESULT = b'"type":"tool_result"'
"""Part of each record of a result, as `records.encoded` writes it; in text its quotes would be escaped."""


class SnapshotJournal:
    """The records of snapshots in a session's log, which may not exist yet; `note` writes one into it."""

    def __init__(self, path: Path, note: Callable[[Mapping[str, Any]], None]) -> None:
        self.path = path
        self.note = note
        self._is_model_behind = False

    def note_restored(self) -> None:
        """Remember that files were brought back, until the model is told."""
        self._is_model_behind = True

    def take_restored(self) -> bool:
        """Return True, once, if files were brought back since the model was last told."""
        was_behind, self._is_model_behind = self._is_model_behind, False
        return was_behind

    async def history(self) -> UndoHistory:
        """Return the changes of the session."""
        return await to_thread.run_sync(lambda: UndoHistory(self._records()))

    async def others(self, since: str) -> Sequence[UndoHistory]:
        """Return the changes of the other sessions of the project that have done something since a record's time."""
        return await to_thread.run_sync(self._others, since)

    def add(
        self,
        cause: Cause,
        before: Trees,
        after: Trees | None,
        *,
        since: str = "",
        turn: str = "",
        adds_files: bool = False,
        files: Sequence[FileChange] = (),
    ) -> None:
        """Record what was there before something that changes files, and after it.

        Args:
            cause: Cause of the change.
            before: Snapshots by folder.
            after: None: it begins now.
            since: When the look at what was there before began, as a record says it; empty: now.
            turn: `uuid` of the message that began the turn.
            adds_files: True if it is the change that has begun, and is about more files now.
            files: Change of each file.
        """
        said: dict[str, Any] = {"adds_files": adds_files}
        if after is not None:
            named = [change.as_json() for change in files[:MAX_FILES_IN_RECORD]]
            said |= {"after": dict(after), "files": named, "file_count": len(files)}
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
    """True if a line may be one that a history is made of; the others need not be parsed."""
    return any(mark in line for mark in _MARKS) and _RESULT not in line
