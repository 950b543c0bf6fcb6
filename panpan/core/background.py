"""What tools and faces need of whoever keeps background tasks; they find it in the session and know no more."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio

from panpan.system.files.output_store import LeftOutput
from panpan.system.processes.process import Child
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskInfo, TaskKind


@dataclass(frozen=True, slots=True)
class BackgroundCommand:
    """A command that is to run in the background."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    """Its whole environment, without the mark of the session's own commands."""
    pass_fds: Sequence[int]
    """Descriptors that it inherits under the same numbers."""
    text: str
    """As the model wrote it."""
    title: str
    """What it does, on one line."""
    tool_use_id: str
    leavings: Sequence[Path] = ()
    """What its sandbox needs, and leaves behind should the command outlive panpan."""


@dataclass(frozen=True, slots=True)
class MovedCommand:
    """A command that ran in the foreground and goes on in the background."""

    child: Child
    output: LeftOutput
    """What it printed so far, and where the rest goes."""
    text: str
    title: str
    tool_use_id: str
    started_at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended."""

    text: str
    """What the model is told of it."""
    is_error: bool


Job: TypeAlias = Callable[[Callable[[str], None]], Awaitable[JobEnd]]
"""Work that panpan does itself, such as that of a subagent; it is given what appends to the task's output."""


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """A part of what a task printed."""

    text: str
    is_cut: bool
    """True if there is more of it that is not in `text`."""
    path: Path
    """The file with all of it, as far as that is kept."""


class Background(Protocol):
    """The background tasks of one session."""

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        """All of them as they are now, oldest first."""
        ...

    @property
    def running(self) -> Sequence[TaskInfo]:
        """Those that have not ended, oldest first."""
        ...

    @property
    def keepable(self) -> Sequence[TaskInfo]:
        """Those of them that can go on without panpan: commands, but for those that were moved here."""
        ...

    @property
    def keeps(self) -> bool:
        """True if commands are left to go on when the session is closed."""
        ...

    def keep_at_exit(self, *, keeps: bool) -> None:
        """Let commands go on when the session is closed, or not, in place of what the settings say."""
        ...

    @property
    def movable(self) -> Sequence[str]:
        """Ids of the calls in the foreground that can be moved."""
        ...

    def move(self, tool_use_id: str | None = None) -> Sequence[str]:
        """Ask a call in the foreground, or all, to go on in the background, and return the ids of those asked."""
        ...

    async def wait_changed(self) -> None:
        """Return when the next one begins or ends."""
        ...

    @property
    def goes_on_at_timeout(self) -> bool:
        """True if a command in the foreground goes on in the background when its time is up."""
        ...

    async def start_command(self, command: BackgroundCommand, resources: AsyncExitStack) -> TaskInfo:
        """Start a command that may outlive the call, and panpan where the user wants that.

        `resources` is what it needs as long as it runs, such as its sandbox; taken over once it has started.

        Raises:
            ToolError: It cannot be started, or too many tasks run.
        """
        ...

    def start_job(self, *, kind: TaskKind, title: str, tool_use_id: str, agent_id: str, job: Job) -> TaskInfo:
        """Run work of panpan's own as a task; it ends with the session. `agent_id` is empty if it is no subagent.

        Raises:
            ToolError: Too many tasks run.
        """
        ...

    def foreground(self, tool_use_id: str) -> AbstractContextManager[anyio.Event]:
        """Let the user move a call to the background while the context lasts; the event is set when he wants that."""
        ...

    def take_command(self, command: MovedCommand, resources: AsyncExitStack) -> TaskInfo:
        """Let a command go on in the background; its child process and `resources` are taken over at once.

        Raises:
            ToolError: Nothing goes on any more, since the session ends; nothing was taken over.
        """
        ...

    async def read(self, task_id: str, *, pattern: str | None, max_bytes: int) -> TaskOutput:
        """Return the end of what a task printed since the model last read it, or of all lines that match a pattern.

        Raises:
            ToolError: There is no such task, or the pattern is no regular expression.
        """
        ...

    async def wait(self, task_id: str, timeout_s: float) -> TaskInfo:
        """Return the task as it is when it has ended, or when the time is up.

        Raises:
            ToolError: There is no such task.
        """
        ...

    async def stop(self, task_id: str) -> TaskInfo:
        """End a task with all that it started, also what it left running, and return how it ended.

        Raises:
            ToolError: There is no such task, or it cannot be ended.
        """
        ...
