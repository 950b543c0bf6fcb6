"""Holding what a tree of processes does: stopped as it stands, to go on later as if nothing had been.

The rule: what is held is everything of the tree at that moment, but for what the user runs himself; who could not be
stopped is named. It is synchronous, so that it is done when the call returns, and takes some milliseconds: it looks at
every process of the machine until none is new.
"""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.system.process_table import MARKS_VARIABLE, RunningProcess, send_signal, still_running
from panpan.system.process_tree import ProcessTree
from panpan.system.terminal_text import printable

_LIMIT_S = 0.5
"""How long new processes are looked for, and those that were signalled are waited for."""
_POLL_S = 0.005
_STOPPED = frozenset("TtZX")
_USERS = "00"
"""Behind the mark of a tree, the mark of what the user runs himself."""


def marked_as_users(tree: ProcessTree, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` so that what is started with it, as part of the tree, counts as run by the user himself."""
    marks = env.get(MARKS_VARIABLE) or os.environ.get(MARKS_VARIABLE, "")
    own = f"{tree.mark}{_USERS}"
    return {**env, MARKS_VARIABLE: f"{marks}:{own}" if marks else own}


class HeldProcesses:
    """What is held of one tree.

    Args:
        tree: Knows its processes.
    """

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._held: list[RunningProcess] = []

    @property
    def names(self) -> Sequence[str]:
        """What is held and alive, each with its number and name."""
        return [_named(process) for process in still_running(self._held)] if self._held else []

    def hold(self) -> Sequence[str]:
        """Stop the tree; return the names of what goes on all the same, such as processes of another user."""
        if not self._tree.has_processes:
            return []
        deadline = time.monotonic() + _LIMIT_S
        known: set[tuple[int, str]] = set()
        while time.monotonic() < deadline:
            new = [process for process in self._present() if (process.pid, process.started) not in known]
            if not new:
                break
            for process in new:
                send_signal(process, signal.SIGSTOP)
            known.update((process.pid, process.started) for process in new)
            self._held += new
        return [_named(process) for process in self._going_on(deadline)]

    def release(self) -> None:
        """Let what is held go on."""
        for process in reversed(self._held):
            send_signal(process, signal.SIGCONT)
        self._held = []

    def _present(self) -> list[RunningProcess]:
        return [process for process in self._tree.members() if f"{self._tree.mark}{_USERS}" not in process.marks]

    def _going_on(self, deadline: float) -> list[RunningProcess]:
        """Return what does not stand still by then; where that cannot be seen, a signal that was sent counts."""
        going_on = [process for process in self._held if not _stands_still(process)]
        while going_on and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            going_on = [process for process in going_on if not _stands_still(process)]
        return going_on


def _stands_still(process: RunningProcess) -> bool:
    stat = Path("/proc", str(process.pid), "stat")
    with suppress(OSError):
        return stat.read_text(errors="replace").rpartition(")")[2].split()[0] in _STOPPED
    return True


def _named(process: RunningProcess) -> str:
    return f"{printable(process.name)} ({process.pid})"
