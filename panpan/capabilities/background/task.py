"""One background task while its session is open."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from panpan.capabilities.background.registry import Registry, TaskRecord
from panpan.core.background import Job
from panpan.errors import ConfigError, PanpanError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.processes.process_table import ProcessTree
from panpan.system.text.redact import KnownKeys
from panpan.types.background import TaskInfo, TaskState

MAX_NOTE_CHARS = 500


class Task:
    """A task with what belongs to it as long as it runs.

    Args:
        record: What is kept of it.
        registry: Where that is kept.
        changed: Called when its state has changed.
        warn: Told what the user should know, one sentence each.
    """

    def __init__(
        self, record: TaskRecord, registry: Registry, changed: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        self.record = record
        self.tree: ProcessTree | None = None
        """The processes of a command; None: it has none."""
        self.scope: anyio.CancelScope | None = None
        """That of a job while it runs."""
        self.ended = anyio.Event()
        self.is_stopping = False
        """Whether it is being ended on purpose."""
        self.stop_note = ""
        """Why, where the model has not asked for it."""
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
        """Whether it can go on without panpan: its output goes into a file, and its exit code is left in another."""
        return self.record.exit_file is not None

    @property
    def named(self) -> str:
        """Its id and title, for people."""
        return f"{self.id} ({self.record.title})"

    def note(self, **fields: object) -> None:
        """Change what is known of it.

        Raises:
            PanpanError: It is known in memory only.
        """
        self.record = self.record.model_copy(update=fields)
        self._registry.save(self.record)

    def update(self, **fields: object) -> None:
        """Change what is known of it, in memory at least."""
        try:
            self.note(**fields)
        except PanpanError as error:
            self._warn(f"what is known of the background task {self.named} is not on disk: {error}")

    def end(self, state: TaskState, *, exit_code: int | None = None, note: str = "", report: str = "") -> None:
        """Let it have ended; of several ends the first counts."""
        if not self.is_running:
            return
        ended_at = None if state == "lost" else time.time()
        note = "; ".join(filter(None, (self.stop_note, note)))[:MAX_NOTE_CHARS]
        self.update(state=state, exit_code=exit_code, ended_at=ended_at, note=note, report=report)
        self.ended.set()
        self._changed()

    def end_command(self, exit_code: int | None, note: str = "") -> None:
        """Let a command have ended, by its exit code; None: nobody knows it."""
        if self.is_stopping:
            self.end("stopped", exit_code=exit_code, note=note)
        elif exit_code is None:
            self.end("lost", note=note or "how it ended is not known")
        else:
            self.end("finished" if exit_code == 0 else "failed", exit_code=exit_code, note=note)


log = logging.getLogger(__name__)


async def run_job(task: Task, job: Job, keys: KnownKeys, *, max_output_bytes: int) -> None:
    """Run a job to its end and say how it ended; a failure of it is its own.

    Args:
        task: The task that it is.
        job: The work.
        keys: What its output file may not hold.
        max_output_bytes: What that file holds at most; the rest is dropped.
    """
    output = _JobOutput(task.record.output, keys, max_output_bytes)
    task.scope = scope = anyio.CancelScope()
    try:
        with scope:
            if task.is_stopping:
                scope.cancel()
            ended = await job(output.write)
            task.end("failed" if ended.is_error else "finished", report=keys.redact(ended.text))
    except PanpanError as error:
        task.end("failed", note=str(error))
    except Exception as error:  # a bug in a job costs that job, not the session
        log.exception("the background task %s failed unexpectedly", task.id)
        task.end("failed", note=f"it failed unexpectedly: {type(error).__name__}: {error}")
    finally:
        task.scope = None
        task.end(
            "stopped", note="" if task.is_stopping else "panpan ended before it did"
        )  # unless it has ended already


class _JobOutput:
    """The output file of a job."""

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
