"""One background task while its session is open."""

import time
from collections.abc import Callable

import anyio

from panpan.capabilities.background.background import TaskInfo, TaskState
from panpan.capabilities.background.registry import Registry, TaskRecord
from panpan.errors import PanpanError
from panpan.system.processes.process_tree import ProcessTree

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
