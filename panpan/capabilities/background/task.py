"""One background task: what belongs to it while its session is open, and what is kept of it on disk."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from panpan.core.background import Elsewhere, Job
from panpan.errors import ConfigError, PanpanError
from panpan.system.files.atomic_write import DiskOperations, write_atomic
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.processes.process_table import ProcessTree, RunningProcess
from panpan.system.text.redact import KnownKeys
from panpan.types.events import TaskInfo, TaskKind, TaskState

log = logging.getLogger(__name__)

MAX_NOTE_CHARS = 500
MAX_ENDED = 1000
"""Most ended tasks that are kept for one session; the oldest are forgotten first."""

_MAX_RECORD_BYTES = 1_000_000
_SUFFIX = ".json"
_STOP_S = 5.0
"""Longest wait for somebody else to end the work on a job."""


class TaskRecord(BaseModel):
    """One task, as it is kept on disk."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str
    kind: TaskKind
    title: str
    command: str = ""
    """Command as the model wrote it; empty for subagents."""
    state: TaskState = "running"
    started_at: float
    ended_at: float | None = None
    exit_code: int | None = None
    output: Path
    tool_use_id: str = ""
    agent_id: str = ""
    note: str = ""
    report: str = ""
    session_mark: str = ""
    """Mark of the process tree that holds the commands of all tasks of the session."""
    mark: str = ""
    """Mark of the process tree of this command alone."""
    pid: int = 0
    """Leader of its process group and session; 0: not started yet."""
    born: str = ""
    """Start time of that process, since the pid may be another's by now."""
    leavings: tuple[Path, ...] = ()
    """Paths that its sandbox leaves behind if panpan ends before the command."""
    exit_file: Path | None = None
    """File for its exit code; None for a command that was moved from the foreground."""
    elsewhere: tuple[str, str] | None = None
    """The capability that goes on with it in another run, and what that has to know; None: nothing goes on."""

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(**{one.name: getattr(self, one.name) for one in fields(TaskInfo)})


class Registry:
    """The records of one session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, record: TaskRecord) -> None:
        make_private_folder(self._folder)
        data = json.dumps(record.model_dump(mode="json", exclude_defaults=True)).encode()
        write_atomic(self._path(record.id), data, mode=0o600, follow_symlinks=True, operations=_NoWaiting())

    def remove(self, task_id: str) -> None:
        """Forget a task and its exit code; its output stays."""
        for path in (self._path(task_id), self.exit_file(task_id)):
            with suppress(OSError):
                path.unlink()

    def exit_file(self, task_id: str) -> Path:
        return self._folder / f"{task_id}.exit"

    def load(self) -> tuple[list[TaskRecord], list[Path]]:
        """Return the records, the oldest first, and files that should hold one and do not."""
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
        """True if a record may be that of a running task; quick with thousands of others, too."""
        return any(_is_without_state(path) for path in self._files())

    def _files(self) -> Iterator[str]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                    yield entry.path

    def _path(self, task_id: str) -> Path:
        return self._folder / f"{task_id}{_SUFFIX}"


class Task:
    """A task with what belongs to it as long as it runs."""

    def __init__(
        self,
        record: TaskRecord,
        registry: Registry,
        changed: Callable[[], None],
        warn: Callable[[str], None],
        tree: ProcessTree | None = None,
    ) -> None:
        self.record = record
        self.tree = tree
        self.ended = anyio.Event()
        self.is_stopping = False
        """True if it is being ended on purpose."""
        self._scope: anyio.CancelScope | None = None
        self._elsewhere: Elsewhere | None = None
        self._stop_note = ""
        self._registry = registry
        self._changed = changed
        self._warn = warn
        if not self.is_running:
            self.ended.set()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def info(self) -> TaskInfo:
        return self.record.info

    @property
    def is_running(self) -> bool:
        return self.record.state == "running"

    @property
    def can_be_kept(self) -> bool:
        """True if it can go on without panpan, since its output and exit code go into files."""
        return self.record.exit_file is not None

    @property
    def named(self) -> str:
        return f"{self.id} ({self.record.title})"

    def will_stop(self, note: str = "") -> None:
        """Note that it is ended on purpose, and why if the model did not ask for it; cancels a job."""
        self.is_stopping = True
        self._stop_note = note or self._stop_note
        if self._scope is not None:
            self._scope.cancel("it was told to stop")

    def reattach(self, process: RunningProcess) -> ProcessTree:
        """Take up a command of an earlier run, and return its processes."""
        self.tree = ProcessTree(self.record.mark)
        self.tree.root_at(process.pid)
        self.update(pid=process.pid, born=process.started)
        return self.tree

    def note(self, **fields: object) -> None:
        self.record = self.record.model_copy(update=fields)
        self._registry.save(self.record)

    def update(self, **fields: object) -> None:
        """Change what is known of it, at least in memory."""
        try:
            self.note(**fields)
        except PanpanError as error:
            self._warn(f"the record of the background task {self.named} cannot be written: {error}")

    def end(self, state: TaskState, *, exit_code: int | None = None, note: str = "", report: str = "") -> None:
        """Note how it ended; only the first end counts."""
        if not self.is_running:
            return
        ended_at = None if state == "lost" else time.time()
        note = "; ".join(filter(None, (self._stop_note, note)))[:MAX_NOTE_CHARS]
        self.update(state=state, exit_code=exit_code, ended_at=ended_at, note=note, report=report)
        self.ended.set()
        self._changed()

    def end_command(self, exit_code: int | None, note: str = "") -> None:
        """Note the end of a command; None: its exit code is not known."""
        if self.is_stopping:
            self.end("stopped", exit_code=exit_code, note=note)
        elif exit_code is None:
            self.end("lost", note=note or "how it ended is not known")
        else:
            self.end("finished" if exit_code == 0 else "failed", exit_code=exit_code, note=note)

    def goes_on(self, elsewhere: Elsewhere) -> None:
        """Note that somebody else works on it."""
        self._elsewhere = elsewhere
        kept = elsewhere.by, elsewhere.what
        if self.record.elsewhere != kept:
            self.update(elsewhere=kept)

    async def run_job(self, job: Job, keys: KnownKeys, *, max_output_bytes: int) -> None:
        """Run a job to its end and note how it ended; a failure is the job's own. Drops output past the limit."""
        output = _JobOutput(self.record.output, keys, max_output_bytes)
        self._scope = scope = anyio.CancelScope()
        try:
            with scope:
                if self.is_stopping:
                    scope.cancel()
                ended = await job(output.write)
                self.end("failed" if ended.is_error else "finished", report=keys.redact(ended.text))
        except PanpanError as error:
            self.end("failed", note=str(error))
        except Exception as error:  # a bug in a job costs that job, not the session
            log.exception("the background task %s failed unexpectedly", self.id)
            self.end("failed", note=f"it failed unexpectedly: {type(error).__name__}: {error}")
        finally:
            self._scope = None
            if self.is_stopping and self.is_running:
                self.end("stopped", note=await self._stopped_elsewhere())
            elif self._elsewhere is None:
                self.end("stopped", note="panpan ended before it did")

    async def _stopped_elsewhere(self) -> str:
        """Let whoever works on it end that, and return a remark if they may not have."""
        if self._elsewhere is None:
            return ""
        with anyio.move_on_after(_STOP_S, shield=True):
            return await self._elsewhere.stop()
        return "nobody answered that the work has ended"


class _NoWaiting(DiskOperations):
    def fsync(self, fd: int) -> None:
        pass


def _is_without_state(path: str) -> bool:
    """True if the file names no state, as `save` does for "running". Quick: every start asks it of each record."""
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


class _JobOutput:
    def __init__(self, path: Path, keys: KnownKeys, max_bytes: int) -> None:
        self._path = path
        self._keys = keys
        self._room = max_bytes

    def write(self, text: str) -> None:
        """Append text; where the disk is full, it is dropped."""
        data = self._keys.redact(text).encode(errors="replace")[: max(0, self._room)]
        self._room -= len(data)
        with suppress(OSError, ConfigError):
            make_private_folder(self._path.parent)
            fd = open_private_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
