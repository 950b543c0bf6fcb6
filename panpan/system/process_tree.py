"""Ending a process with everything that came from it, also what left its group, its session or its parent.

The rule: a tree is known by a mark in the environment that each process inherits. What clears its environment is still
found by its parent, group, session or the output pipe that it holds; only what has shed all of these gets away, and a
sandbox with its own process numbers is the boundary for that.
"""

import os
import secrets
import signal
from collections.abc import Mapping
from functools import partial

import anyio
from anyio import CancelScope, to_thread

from panpan.system.process_table import RunningProcess, holds_pipe, marked, running_processes, send_signal

MARKS_VARIABLE = "PANPAN_PROCESS_MARKS"
"""Holds the marks of all trees that a process belongs to, the outermost first, separated by colons."""

KILL_LIMIT_S = 2.0
"""How long the tree is killed again and again, should it start new processes faster than they are found."""

_POLL_S = 0.02


class ProcessTree:
    """All processes started with its mark, and what they started.

    A session marks the environment of all its commands, so that at its end none of them survives:

        tree = ProcessTree()
        env = tree.marked(child_environment())
        ...
        await tree.end()
    """

    def __init__(self) -> None:
        self.mark = secrets.token_hex(16)
        self._has_processes = False
        self._root_pid: int | None = None
        self._pipe_inodes: tuple[int, ...] = ()

    def marked(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return `env` with the mark, so that what is started with it belongs to the tree."""
        self._has_processes = True
        marks = env.get(MARKS_VARIABLE) or os.environ.get(MARKS_VARIABLE, "")
        return {**env, MARKS_VARIABLE: f"{marks}:{self.mark}" if marks else self.mark}

    def root_at(self, pid: int, pipe_inodes: tuple[int, ...] = ()) -> None:
        """Count also the descendants of `pid`, its group and session, and the holders of these pipes.

        Args:
            pid: A process that leads its own session.
            pipe_inodes: Pipes that only the tree writes to.
        """
        self._has_processes = True
        self._root_pid = pid
        self._pipe_inodes = pipe_inodes

    def members(self) -> list[RunningProcess]:
        """Return what is alive of the tree. Takes some milliseconds: it looks at every process of the machine."""
        processes = running_processes()
        own = os.getpid()
        members = marked(self.mark, processes)
        members |= {pid for pid, process in processes.items() if self._descends(process)}
        members.discard(own)
        children: dict[int, list[int]] = {}
        for process in processes.values():
            children.setdefault(process.parent, []).append(process.pid)
        to_visit = list(members)
        while to_visit:
            for child in children.get(to_visit.pop(), ()):
                if child not in members and child != own:
                    members.add(child)
                    to_visit.append(child)
        return [processes[pid] for pid in sorted(members)]

    async def end(self, grace_s: float = 2.0) -> list[RunningProcess]:
        """End every process of the tree; cannot be cancelled, and takes at most `grace_s` and some seconds.

        Args:
            grace_s: Seconds between asking them to end (TERM) and killing them; at least 0.

        Returns:
            What could not be ended, such as processes of another user.
        """
        if not self._has_processes:
            return []  # spares sessions that ran no command a look at every process of the machine
        # A limiter of its own: the common one may be full of threads that hang on a dead disk.
        look = partial(to_thread.run_sync, limiter=anyio.CapacityLimiter(1))
        with CancelScope(shield=True):
            remaining = await look(self._signal_all, signal.SIGTERM)
            with anyio.move_on_after(grace_s):
                while remaining:
                    await anyio.sleep(_POLL_S)
                    remaining = await look(self.members)
            with anyio.move_on_after(KILL_LIMIT_S):
                while remaining:
                    await look(self._signal_all, signal.SIGKILL)
                    await anyio.sleep(_POLL_S)
                    remaining = await look(self.members)
        return remaining

    def _descends(self, process: RunningProcess) -> bool:
        root = self._root_pid
        if root is not None and root in (process.pid, process.group, process.session):
            return True
        return any(holds_pipe(process.pid, inode) for inode in self._pipe_inodes)

    def _signal_all(self, number: signal.Signals) -> list[RunningProcess]:
        members = self.members()
        for member in members:
            send_signal(member, number)
            if number is signal.SIGTERM:
                send_signal(member, signal.SIGCONT)  # a stopped process would not notice
        return members
