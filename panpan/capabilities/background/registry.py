"""What is known of a session's background tasks on disk, so that they are found again after a crash: one file a task.

The rule: a task's record is there before its process is, so that none runs that nobody knows. A record is replaced as a
whole; that it reaches the disk is not waited for, since a power cut ends the processes, too.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from panpan.errors import ConfigError
from panpan.system.files.atomic_write import DiskOperations, write_atomic
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.types.background import TaskInfo, TaskKind, TaskState

MAX_ENDED = 1000
"""How many tasks that have ended are kept of one session; the oldest are forgotten first."""

_MAX_RECORD_BYTES = 1_000_000
_SUFFIX = ".json"


class TaskRecord(BaseModel):
    """One task, as it is kept."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str
    kind: TaskKind
    title: str
    command: str = ""
    """As the model wrote it; empty for subagents."""
    state: TaskState = "running"
    started_at: float
    ended_at: float | None = None
    exit_code: int | None = None
    output: Path
    tool_use_id: str = ""
    agent_id: str = ""
    note: str = ""
    report: str = ""
    """What a subagent said at its end."""
    session_mark: str = ""
    """That of the tree of all commands of the session's tasks."""
    mark: str = ""
    """That of the tree of this command alone."""
    pid: int = 0
    """The process that leads its group and its session; 0: it was not started yet."""
    born: str = ""
    """When that process was started, as the system tells it: the number may be another's by now."""
    leavings: tuple[Path, ...] = ()
    """What its sandbox left behind when panpan ended before it."""
    exit_file: Path | None = None
    """Where its exit code is left; None: nowhere, as that of a command that was moved here from the foreground."""

    @property
    def info(self) -> TaskInfo:
        """What others are told of it."""
        return TaskInfo(
            id=self.id,
            kind=self.kind,
            title=self.title,
            state=self.state,
            started_at=self.started_at,
            output=self.output,
            ended_at=self.ended_at,
            exit_code=self.exit_code,
            tool_use_id=self.tool_use_id,
            agent_id=self.agent_id,
            note=self.note,
        )


class Registry:
    """The records of one session.

    Args:
        folder: Where they are; made, private, for the first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, record: TaskRecord) -> None:
        """Keep a record in place of what is there of its task.

        Raises:
            ConfigError: The folder cannot be made.
            ToolError: It cannot be written; what was there stays.
        """
        make_private_folder(self._folder)
        data = json.dumps(record.model_dump(mode="json", exclude_defaults=True)).encode()
        write_atomic(self._path(record.id), data, mode=0o600, follow_symlinks=True, operations=_NoWaiting())

    def remove(self, task_id: str) -> None:
        """Forget a task, with its exit code; its output stays."""
        for path in (self._path(task_id), self.exit_file(task_id)):
            with suppress(OSError):
                path.unlink()

    def exit_file(self, task_id: str) -> Path:
        """Return where the exit code of a command is left."""
        return self._folder / f"{task_id}.exit"

    def load(self) -> tuple[list[TaskRecord], list[Path]]:
        """Return the records, the oldest first, and the files that hold none although they should."""
        records, damaged = [], []
        for path in map(Path, self._files()):
            record = _read(path)
            if record is None:
                damaged.append(path)
            else:
                records.append(record)
        records.sort(key=lambda record: (record.started_at, record.id))
        return records, sorted(damaged)

    def may_hold_running(self) -> bool:
        """True if a record may be that of a running task; quick also where there are thousands of others."""
        return any(_is_without_state(path) for path in self._files())

    def _files(self) -> Iterator[str]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                    yield entry.path

    def _path(self, task_id: str) -> Path:
        return self._folder / f"{task_id}{_SUFFIX}"


class _NoWaiting(DiskOperations):
    """The disk, without waiting for it."""

    def fsync(self, fd: int) -> None:
        pass


def _is_without_state(path: str) -> bool:
    """True if the file names no state, which `save` leaves out where it is the default.

    Every start asks it of each record, so it takes the shortest way: no `Path`, and no more room than the file needs.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return b'"state"' not in os.read(fd, os.fstat(fd).st_size)
    except OSError:
        return False
    finally:
        os.close(fd)


def _read(path: Path) -> TaskRecord | None:
    try:
        with os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file:
            record = TaskRecord.model_validate_json(file.read(_MAX_RECORD_BYTES))
    except (OSError, ConfigError, ValidationError):
        return None
    return record if record.id == path.name.removesuffix(_SUFFIX) else None
