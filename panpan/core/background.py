"""Protocol of the background tasks of a session, for the tools and faces that use them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio

from panpan.system.files.output_store import DetachedOutput
from panpan.system.processes.process import Child
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskInfo, TaskKind


@dataclass(frozen=True, slots=True)
class BackgroundCommand:
    """A command to start in the background."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    """Its whole environment, without the variable that marks the session's own commands."""
    pass_fds: Sequence[int]
    """Descriptors that it inherits under the same numbers."""
    text: str
    """The command as the model wrote it."""
    title: str
    """Description of the command, on one line."""
    tool_use_id: str
    leavings: Sequence[Path] = ()
    """Files that its sandbox needs, and leaves behind if the command outlives panpan."""


@dataclass(frozen=True, slots=True)
class MovedCommand:
    """A command that ran in the foreground and goes on in the background."""

    child: Child
    output: DetachedOutput
    """The output so far, to which the rest is appended."""
    text: str
    title: str
    tool_use_id: str
    started_at: float
    """Seconds since 1970."""
    feed: Callable[[bytes], object] = lambda _: None
    """Told what it prints from now on."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job."""

    text: str
    """Result for the model."""
    is_error: bool


Job: TypeAlias = Callable[[Callable[[str], None]], Awaitable[JobEnd]]
"""Work that panpan does itself, such as that of a subagent. Its argument appends text to the task's output."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Work on a job by somebody else, so that another run of panpan can go on with it."""

    by: str
    """Name of the capability that goes on with it."""
    what: str
    """Facts that it needs for that, as text."""
    stop: Callable[[], Awaitable[str]]
    """Ends the work, and returns a remark if that may have failed; called if the task is told to stop, and not if the
    session ends."""


TakeUp: TypeAlias = Callable[[TaskInfo, str], tuple[Job, Elsewhere]]
"""Returns the job that goes on with a task of an earlier run, by what was kept of it (`Elsewhere.what`).

Raises:
    ToolError: It cannot be gone on with.
"""


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """A part of the output of a task."""

    text: str
    is_cut: bool
    """True if `text` leaves out a part of the output that was asked for."""
    path: Path
    """File with the whole output, as much of it as is kept."""


class Background(Protocol):
    """The background tasks of one session."""

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        """All tasks as they are now, oldest first."""
        ...

    @property
    def running(self) -> Sequence[TaskInfo]:
        """Tasks that have not ended, oldest first."""
        ...

    @property
    def keepable(self) -> Sequence[TaskInfo]:
        """Running tasks that can go on without panpan: commands, except those that began in the foreground."""
        ...

    @property
    def keeps(self) -> bool:
        """True if commands go on when the session is closed."""
        ...

    def keep_at_exit(self, *, keeps: bool) -> None:
        """Let commands go on when the session is closed, or stop them, whatever the settings say."""
        ...

    @property
    def movable(self) -> Sequence[str]:
        """Ids of the calls in the foreground that can be moved."""
        ...

    def move(self, tool_use_id: str | None = None) -> Sequence[str]:
        """Move a call in the foreground, or all of them, to the background, and return the ids of those asked."""
        ...

    async def wait_changed(self) -> None:
        """Wait until a task begins or ends."""
        ...

    @property
    def continues_after_timeout(self) -> bool:
        """True if a command in the foreground goes on in the background when its time is up."""
        ...

    async def start_command(self, command: BackgroundCommand, resources: AsyncExitStack) -> TaskInfo:
        """Start a command that may outlive the call, and panpan too if the user wants that.

        `resources` are needed as long as it runs, such as its sandbox; they are taken over once it has started.

        Raises:
            ToolError: It cannot be started, or too many tasks run.
        """
        ...

    def start_job(self, *, kind: TaskKind, title: str, tool_use_id: str, agent_id: str, job: Job) -> TaskInfo:
        """Run work of panpan itself as a task; it ends with the session. `agent_id` is empty if it is no subagent.

        Raises:
            ToolError: Too many tasks run.
        """
        ...

    def goes_on(self, task_id: str, elsewhere: Elsewhere) -> None:
        """Note that somebody else works on a job: it does not end with the session, and a resumed one takes it up."""
        ...

    def take_up(self, by: str, take: TakeUp) -> None:
        """Let a capability go on with its jobs of earlier runs, once the tasks are served."""
        ...

    def foreground(
        self, tool_use_id: str, on_asked: Callable[[], None] = lambda: None
    ) -> AbstractContextManager[anyio.Event]:
        """Let the user move a call to the background while the context lasts.

        When they want that, the event is set, then `on_asked` is called.
        """
        ...

    def take_command(self, command: MovedCommand, resources: AsyncExitStack) -> TaskInfo:
        """Let a command go on in the background; its child process and `resources` are taken over at once.

        Raises:
            ToolError: The session is ending; nothing was taken over.
        """
        ...

    async def read(self, task_id: str, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        """Return the end of the output since the model last read it, or of all lines that match a pattern.

        Raises:
            ToolError: There is no such task, or the pattern is no regular expression.
        """
        ...

    async def output(self, task_id: str, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        """Return the end of the whole output, or of its lines that match a pattern; what the model has read stays.

        Raises:
            ToolError: There is no such task, or the pattern is no regular expression.
        """
        ...

    async def wait(self, task_id: str, timeout_s: float) -> TaskInfo:
        """Wait until a task has ended or the time is up, and return its state.

        Raises:
            ToolError: There is no such task.
        """
        ...

    async def stop(self, task_id: str) -> TaskInfo:
        """Stop a task with all processes that it started, even those left running, and return its final state.

        Raises:
            ToolError: There is no such task, or it cannot be stopped.
        """
        ...
