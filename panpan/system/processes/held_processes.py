"""Holding what trees of processes do: stopped as it stands, to go on later as if nothing had been.

The rule: what is held is everything of the trees at that moment, but for what the user runs himself; who could not be
stopped is named. It begins in a call that is not awaited, so that what is found at once stands still when that
returns; each look takes some milliseconds, since it goes over every process of the machine.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from panpan.system.processes.process_table import (
    MARKS_VARIABLE,
    RunningProcess,
    look,
    running_processes,
    send_signal,
    still_running,
)
from panpan.system.processes.process_tree import ProcessTree
from panpan.system.text.terminal_text import printable

_AT_ONCE_S = 0.05
"""How long everything else waits for it."""
_LOOKS = 20
"""How often it looks after that, while new processes are found or those that were signalled do not stand still: half a
second, and longer on a machine that takes long for a look, since what no look has seen is not stopped."""
_POLL_S = 0.005
_REST_POLL_S = 0.02
_STOPPED = frozenset(("T", "t", "Z", "X", ""))
_USERS = "00"
"""Behind the mark of a tree, the mark of what the user runs himself."""


def marked_as_users(tree: ProcessTree, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` so that what is started with it, as part of the tree, counts as run by the user himself."""
    marks = env.get(MARKS_VARIABLE) or os.environ.get(MARKS_VARIABLE, "")
    own = f"{tree.mark}{_USERS}"
    return {**env, MARKS_VARIABLE: f"{marks}:{own}" if marks else own}


class HeldProcesses:
    """What is held of some trees.

    Args:
        trees: Know their processes.
        state_of: Returns the state of a process in a letter (proc_pid_stat(5)); empty where that cannot be seen.
    """

    def __init__(self, *trees: ProcessTree, state_of: Callable[[RunningProcess], str] | None = None) -> None:
        self._trees = trees
        self._state_of = state_of or _state_of
        self._users = frozenset(f"{tree.mark}{_USERS}" for tree in trees)
        self._held: list[RunningProcess] = []
        self._is_holding = False

    @property
    def names(self) -> Sequence[str]:
        """What is held and alive, each with its number and name."""
        return [_named(process) for process in still_running(self._held)] if self._held else []

    def hold(self) -> bool:
        """Stop the trees, and return whether all of them stands still; where not, `hold_rest` has to go on."""
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
        """Go on until all of the trees stands still, or `release` is called.

        Returns:
            The names of what goes on all the same, such as processes of another user.
        """
        for _ in range(_LOOKS):
            if not self._is_holding:
                break
            members = self._members_among(await look())
            if not self._is_holding or not (self._stop(members) or self._going_on()):
                break
            await anyio.sleep(_REST_POLL_S)
        return [_named(process) for process in self._going_on()] if self._is_holding else []

    def release(self) -> None:
        """Let what is held go on."""
        self._is_holding = False
        for process in reversed(self._held):
            send_signal(process, signal.SIGCONT)
        self._held = []

    def _members_among(self, processes: Mapping[int, RunningProcess]) -> list[RunningProcess]:
        return [member for tree in self._trees for member in tree.members_among(processes)]

    def _stop(self, members: Sequence[RunningProcess]) -> bool:
        """Stop those of the trees that are new; return whether there were any."""
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
        """Return what does not stand still; where that cannot be seen, a signal that was sent counts.

        A shell that was just starting a program waits in the kernel for its child (vfork(2)), and cannot be stopped
        before that has begun; where the child is stopped first, both stand still.
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
