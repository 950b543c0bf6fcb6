"""Commands in the background: begun, or taken over from the foreground, and followed to their end.

One that was started for the background depends on nothing of panpan's and is only looked at. One that was moved there
prints into a pipe of panpan's, and ends with its follower.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import anyio

from panpan.capabilities.background.task import Task
from panpan.capabilities.background.task_set import TaskSet
from panpan.core.background import BackgroundCommand, MovedCommand
from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.output_store import DetachedOutput
from panpan.system.processes.detached import exit_code_in, start_detached
from panpan.system.processes.process import ProcessEnded, run_child
from panpan.system.processes.process_table import ProcessTree, RunningProcess, reap, running_process, wait_for_exit
from panpan.system.text.terminal_text import printable


def start_task(
    command: BackgroundCommand, tasks: TaskSet, tree: ProcessTree, output: Callable[[str], Path]
) -> tuple[Task, RunningProcess]:
    """Start a command as a task of `tasks`; return it with its leading process."""
    own_tree = ProcessTree()
    task = tasks.new(
        "command",
        title=command.title,
        output=output,
        tool_use_id=command.tool_use_id,
        command=command.text,
        tree=own_tree,
    )
    exit_file = tasks.registry.exit_file(task.id)
    leavings = tuple(command.leavings)
    try:
        task.note(session_mark=tree.mark, mark=own_tree.mark, exit_file=exit_file, leavings=leavings)
    except PanpanError as exc:  # after a crash nobody would know about it
        raise ToolError(
            f"cannot start the command in the background, since its record cannot be written: {exc}"
        ) from exc
    try:
        process = start_detached(
            command.argv,
            cwd=command.cwd,
            env=tree.marked(command.env),
            tree=own_tree,
            output=task.record.output,
            exit_file=exit_file,
            pass_fds=command.pass_fds,
        )
    except BaseException:
        tasks.registry.remove(task.id)
        raise
    task.update(pid=process.pid, born=process.started)  # no await since the start, so no process is without a task
    tasks.add(task)
    return task, process


def take_over(command: MovedCommand, tasks: TaskSet) -> Task:
    """Make a command from the foreground a task of `tasks`."""
    task = tasks.new(
        "command",
        title=command.title,
        output=lambda _: command.output.path,
        tool_use_id=command.tool_use_id,
        command=command.text,
        started_at=command.started_at,
        tree=command.child.tree,
    )
    process = running_process(command.child.pid)
    born = "" if process is None else process.started
    task.update(mark=command.child.tree.mark, pid=command.child.pid, born=born, note=command.output.failure)
    tasks.add(task)
    return task


STOP_GRACE_S = 5.0
"""Seconds between asking a task to end and killing it."""

_POLL_S = 0.5
"""Seconds between two looks at the size of an output."""
_MOMENT_S = 0.2
_MAX_NAMES = 3


async def follow_command(
    task: Task, process: RunningProcess, resources: AsyncExitStack, *, max_output_bytes: int
) -> None:
    """Wait for the end of a command that panpan did not pipe, and note how it ended; closes `resources`."""
    async with resources:
        has_ended = False
        while not has_ended:
            with anyio.move_on_after(_POLL_S):
                await wait_for_exit(process)
                has_ended = True
            if not has_ended and _size(task.record.output) > max_output_bytes:
                await _end_for_output(task, max_output_bytes)
    note = "" if task.is_stopping else await _left_running(task.tree)  # a stopped task ends a moment later
    task.end_command(exit_code_of(task, process.pid), note)
    if note:
        await _bound_what_is_left(task, max_output_bytes)


async def follow_moved(
    task: Task,
    command: MovedCommand,
    resources: AsyncExitStack,
    *,
    max_output_bytes: int,
    take_pipe: Callable[[int], object],
) -> None:
    """Go on with a command that was moved from the foreground; it is ended where this is cancelled."""
    async with resources:
        file = _OutputFile(command.output, max_output_bytes)
        ended: ProcessEnded | None = None
        following = run_child(command.child, timeout_s=None, kill_grace_s=STOP_GRACE_S, take_pipe=take_pipe)
        async with aclosing(following) as items:
            with file:
                async for item in items:
                    if isinstance(item, ProcessEnded):
                        ended = item
                    elif isinstance(item, bytes):
                        command.feed(item)
                        if not file.add(item) and not task.is_stopping:
                            await _end_for_output(task, max_output_bytes)
    task.end_command(None if ended is None else ended.exit_code, file.failure)


def exit_code_of(task: Task, pid: int) -> int | None:
    """Return the exit code of an ended command, if known."""
    if task.record.exit_file is None:
        return None  # it was moved to the background, and its follower knows
    own = reap(pid)
    left = exit_code_in(task.record.exit_file)
    return own if left is None else left


async def _end_for_output(task: Task, max_output_bytes: int) -> None:
    limit = f"{max_output_bytes // 10**6:,} MB (setting background.max_output_mb)"
    task.will_stop(f"stopped because it printed more than {limit}")
    if task.tree is not None:
        await task.tree.end(STOP_GRACE_S)


class _OutputFile:
    """The file for the rest of an output. The command does not suffer from a full disk."""

    def __init__(self, output: DetachedOutput, max_bytes: int) -> None:
        self.failure = ""
        """Reason why the rest of the output is not in the file; empty if it is."""
        self._keys = output.keys
        self._room = max_bytes
        self._fd = -1
        try:
            make_private_folder(output.path.parent)
            self._fd = open_private_file(output.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._room -= os.fstat(self._fd).st_size
        except (OSError, ConfigError) as error:
            self._fail(error)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._write(self._keys.finish())
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def add(self, data: bytes) -> bool:
        """Write; return True if there is room for more."""
        self._write(self._keys.feed(data))
        return self._room > 0

    def _write(self, data: bytes) -> None:
        data = data[: max(0, self._room)]
        self._room -= len(data)
        try:
            while data and self._fd >= 0 and not self.failure:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError | ConfigError) -> None:
        """Write no more, so that what is there has no gap."""
        why = error.strerror if isinstance(error, OSError) else str(error)
        self.failure = f"not all of its output could be kept: {why}"


async def end_task_leftovers(task: Task) -> None:
    """End what an ended command left running; only its mark counts, since its pid may be another's by now."""
    if not task.record.mark:
        return
    tree = ProcessTree(task.record.mark)
    if await tree.look():
        if await tree.end(STOP_GRACE_S):
            raise ToolError(f"what the background task {task.named} left running was told to stop, but still runs")
        task.update(note="processes that it left were stopped")


async def _bound_what_is_left(task: Task, max_output_bytes: int) -> None:
    """Watch the output of what is left until it is too large; does not end by itself."""
    while _size(task.record.output) <= max_output_bytes:  # noqa: ASYNC110 - nobody tells when a file grows
        await anyio.sleep(_POLL_S)
    await ProcessTree(task.record.mark).end(STOP_GRACE_S)
    limit = f"more than {max_output_bytes // 10**6:,} MB (setting background.max_output_mb)"
    task.update(note=f"processes that it left were stopped because they printed {limit}")


async def _left_running(tree: ProcessTree | None) -> str:
    if tree is None or not await tree.look():
        return ""
    await anyio.sleep(_MOMENT_S)
    left: Sequence[RunningProcess] = await tree.look()
    if not left:
        return ""
    names = ", ".join(f"{printable(process.name)} ({process.pid})" for process in left[:_MAX_NAMES])
    return f"still running of it: {names}{' and more' if len(left) > _MAX_NAMES else ''}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
