"""Starting commands that can outlive panpan, and holding what trees of processes do.

The rule: nothing of a detached command hangs on us, and how it ended can be read later. It writes into a file and not
into a pipe, it leads its own session, it has the mark of its own tree, and a small shell around it, outside of any
sandbox, notes its exit code. Words are handed on as arguments, never put into the text of a script.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from panpan.errors import ConfigError, ToolError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.processes.process_table import (
    ProcessTree,
    RunningProcess,
    look,
    running_process,
    running_processes,
    send_signal,
    still_running,
    with_mark,
)
from panpan.system.text.terminal_text import printable

_LAUNCHER = """cd -- "$2" || exit 126
trap : HUP INT TERM
__panpan_exit_file=$1
shift 2
"$@"
__panpan_code=$?
umask 077
echo "$__panpan_code" >"$__panpan_exit_file"
exit "$__panpan_code"
"""
"""The traps keep the shell alive when all of the tree is asked to end; what it starts has none. The code is one write,
and its reader takes it only with the end of its line."""

_SHELL = "/bin/sh"
_RESTORED = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ") if hasattr(signal, name))
"""Signals that Python ignores and programs expect to get."""


def start_detached(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    tree: ProcessTree,
    output: Path,
    exit_file: Path,
    pass_fds: Sequence[int] = (),
) -> RunningProcess:
    """Start a command, and return the process that leads its session; a child of ours until panpan ends.

    It prints, errors included, to the end of `output`, which is made private where it is missing. `exit_file` must not
    be there yet. `env` is its whole environment but for the mark of the tree.

    Raises:
        ToolError: It cannot be started.
    """
    try:
        make_private_folder(output.parent)
        out = open_private_file(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            pid = os.posix_spawn(
                _SHELL,
                [_SHELL, "-c", _LAUNCHER, "background-task", str(exit_file), str(cwd), *argv],
                tree.marked(env),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, out, 1),
                    (os.POSIX_SPAWN_DUP2, out, 2),
                    *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in pass_fds),
                ],
                setsid=True,
                setsigdef=_RESTORED,
                setsigmask=(),
            )
        finally:
            os.close(out)
    except ConfigError as exc:
        raise ToolError(f"cannot start the command in the background: {exc}") from exc
    except (OSError, ValueError, NotImplementedError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ToolError(f"cannot start the command in the background: {reason}") from exc
    tree.root_at(pid)
    ended_already = RunningProcess(pid, os.getpid(), pid, pid, started="", name="sh")
    return running_process(pid) or ended_already


def exit_code_in(file: Path) -> int | None:
    """Return the exit code that a command left; None if there is none, or not yet."""
    with suppress(OSError, ConfigError, ValueError), os.fdopen(open_private_file(file, os.O_RDONLY), "rb") as opened:
        text = opened.read(16)
        if text.endswith(b"\n"):
            return int(text)
    return None


_AT_ONCE_S = 0.05
"""Time for which everything else waits."""
_LOOKS = 20
"""Further looks while new processes are found, or signalled ones still run. They take half a second, and more on a
machine on which a look takes long, since a process that no look has seen is not stopped."""
_POLL_S = 0.005
_REST_POLL_S = 0.02
_STOPPED = frozenset(("T", "t", "Z", "X", ""))
_USERS = "00"
"""Ends the mark of what users run themselves, which begins with that of a tree."""


def mark_as_user_command(tree: ProcessTree, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` so that what is started with it, as part of the tree, counts as run by the user."""
    return with_mark(env, f"{tree.mark}{_USERS}")


class HeldProcesses:
    """Processes of some trees that are stopped, to go on later as if nothing had happened.

    `state_of` returns the state of a process in a letter (proc_pid_stat(5)); empty if that cannot be seen.
    """

    def __init__(self, *trees: ProcessTree, state_of: Callable[[RunningProcess], str] | None = None) -> None:
        self._trees = trees
        self._state_of = state_of or _state_of
        self._users = frozenset(f"{tree.mark}{_USERS}" for tree in trees)
        self._held: list[RunningProcess] = []
        self._is_holding = False

    @property
    def names(self) -> Sequence[str]:
        """Each held process that is alive, with its name and number."""
        return [_named(process) for process in still_running(self._held)] if self._held else []

    def hold(self) -> bool:
        """Stop the trees, and return True if none of them runs on; if one does, `hold_rest` has to go on."""
        if not any(tree.has_processes for tree in self._trees):
            return True
        self._is_holding = True
        deadline = time.monotonic() + _AT_ONCE_S
        while self._stop(self._members_among(running_processes())) or self._going_on():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    async def hold_rest(self) -> Sequence[str]:
        """Go on until all trees are stopped or `release` is called; return the names of processes that do not stop."""
        for _ in range(_LOOKS):
            if not self._is_holding:
                break
            members = self._members_among(await look())
            if not self._is_holding or not (self._stop(members) or self._going_on()):
                break
            await anyio.sleep(_REST_POLL_S)
        return [_named(process) for process in self._going_on()] if self._is_holding else []

    def release(self) -> None:
        self._is_holding = False
        for process in reversed(self._held):
            send_signal(process, signal.SIGCONT)
        self._held = []

    def _members_among(self, processes: Mapping[int, RunningProcess]) -> list[RunningProcess]:
        return [member for tree in self._trees for member in tree.members_among(processes)]

    def _stop(self, members: Sequence[RunningProcess]) -> bool:
        held = {(process.pid, process.started) for process in self._held}
        new = [
            process
            for process in members
            if (process.pid, process.started) not in held and self._users.isdisjoint(process.marks)
        ]
        for process in new:
            send_signal(process, signal.SIGSTOP)
        self._held += new
        return bool(new)

    def _going_on(self) -> list[RunningProcess]:
        """Return the processes that are not stopped; where that cannot be seen, a signal that was sent counts.

        A shell that was just starting a program waits in the kernel for its child (vfork(2)), and cannot be stopped
        before that has begun; if the child is stopped first, both are.
        """
        states = {process.pid: self._state_of(process) for process in self._held}
        moving = [process for process in self._held if states[process.pid] not in _STOPPED]
        stopped_for = {process.parent for process in self._held if states[process.pid] in ("T", "t")}
        return [one for one in moving if not (states[one.pid] == "D" and one.pid in stopped_for)]


def _state_of(process: RunningProcess) -> str:
    with suppress(OSError):
        return Path("/proc", str(process.pid), "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    return ""


def _named(process: RunningProcess) -> str:
    return f"{printable(process.name)} ({process.pid})"
