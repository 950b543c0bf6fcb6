"""Ending a process with everything that came from it, also what left its group, its session or its parent.

The rule: a tree is known by a mark in the environment that each process inherits. What clears its environment is still
found by its parent, group, session or the output pipe that it holds; only what has shed all of these gets away, and a
sandbox with its own process numbers is the boundary for that.
"""

import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import anyio
from anyio import CancelScope

from panpan.system.processes.process_table import (
    MARKS_VARIABLE,
    RunningProcess,
    in_a_thread,
    look,
    running_processes,
    send_signal,
    still_running,
)

KILL_LIMIT_S = 2.0
"""How long the tree is killed again and again, should it start new processes faster than they are found."""
STOP_LIMIT_S = 3.0
"""How long a tree that outlived TERM is stopped before it is killed; one that multiplies needs several looks."""

_POLL_S = 0.02
_KILL_AGAIN_S = 0.1
"""After so long, what was killed and is still there is looked for again, with what it has started meanwhile."""


class ProcessTree:
    """All processes started with its mark, and what they started.

    A session marks the environment of all its commands, so that at its end none of them survives:

        tree = ProcessTree()
        env = tree.marked(child_environment())
        ...
        await tree.end()

    Args:
        mark: That of a tree whose panpan is gone; a new one, if not given.
        look: Returns all processes of the machine by their numbers.
    """

    def __init__(self, mark: str = "", look: Callable[[], Awaitable[Mapping[int, RunningProcess]]] = look) -> None:
        self.mark = mark or secrets.token_hex(16)
        self._look = look
        self._has_processes = bool(mark)
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

    @property
    def has_processes(self) -> bool:
        """Whether anything was ever started with the mark; a look is spared where nothing was."""
        return self._has_processes

    async def look(self) -> list[RunningProcess]:
        """Return what is alive of the tree, as `members` does, without holding up anything else."""
        return self._members_of(await self._look())

    def members(self) -> list[RunningProcess]:
        """Return what is alive of the tree. Takes some milliseconds: it looks at every process of the machine."""
        return self._members_of(running_processes())

    def members_among(self, processes: Mapping[int, RunningProcess]) -> list[RunningProcess]:
        """Return what belongs to the tree of the processes that a look at all of the machine has seen."""
        return self._members_of(processes)

    def _members_of(
        self, processes: Mapping[int, RunningProcess], known: Iterable[RunningProcess] = ()
    ) -> list[RunningProcess]:
        """Return those of the tree; `known` ones also where nothing tells any more, since their parent has ended."""
        own = os.getpid()
        births = {process.pid: process.started for process in known}
        members = {
            pid for pid, process in processes.items() if births.get(pid) == process.started or self._belongs(process)
        }
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
            grace_s: Seconds between asking them to end (TERM) and killing them; 0 kills them unasked.

        Returns:
            What could not be ended, such as processes of another user.
        """
        if not self._has_processes:
            return []  # spares sessions that ran no command a look at every process of the machine
        with CancelScope(shield=True):
            remaining = await (self._signal_all(signal.SIGTERM) if grace_s > 0 else self.look())
            with anyio.move_on_after(grace_s):
                while remaining:
                    remaining = await self._outlived_by(remaining)
            with anyio.move_on_after(STOP_LIMIT_S):
                remaining = await self._stopped(remaining)
            _signal_groups(remaining, signal.SIGKILL)  # these at least, however long another look takes
            with anyio.move_on_after(KILL_LIMIT_S):
                while remaining:
                    remaining = await self._signal_all(signal.SIGKILL, remaining)
                    with anyio.move_on_after(_KILL_AGAIN_S):
                        remaining = await self._outlived_by(remaining)
        return remaining

    async def _outlived_by(self, known: Sequence[RunningProcess]) -> list[RunningProcess]:
        """Wait until the processes that are known have ended, and return what of the tree is alive then."""
        limiter = anyio.CapacityLimiter(1)
        while known:
            await anyio.sleep(_POLL_S)
            known = await in_a_thread(partial(still_running, known), limiter)
        return self._members_of(await self._look())

    async def _stopped(self, known: list[RunningProcess]) -> list[RunningProcess]:
        """Stop all of the tree and return it, so that killing some makes no room for others to multiply in."""
        stopped = set[tuple[int, str]]()
        while known:
            members = await self._signal_all(signal.SIGSTOP, known)
            now = {(member.pid, member.started) for member in members}
            if now <= stopped:
                return members
            known, stopped = members, now
        return known

    async def _signal_all(self, number: signal.Signals, known: Iterable[RunningProcess] = ()) -> list[RunningProcess]:
        """Signal what is alive of the tree, and return it."""
        members = self._members_of(await self._look(), known)
        if number is not signal.SIGTERM:
            _signal_groups(members, number)
            return members
        for member in members:
            send_signal(member, number)
            send_signal(member, signal.SIGCONT)  # a stopped process would not notice
        return members

    def _belongs(self, process: RunningProcess) -> bool:
        """Whether the process itself tells that it belongs to the tree; what it started belongs to it, too."""
        root = self._root_pid
        if root is not None and root in (process.pid, process.group, process.session):
            return True
        return self.mark in process.marks or not process.output_pipes.isdisjoint(self._pipe_inodes)


def _signal_groups(members: Sequence[RunningProcess], number: signal.Signals) -> None:
    """Signal the members group by group, each group at once, so that no child is born in between.

    A session that a member is in, and we are not, was begun by a process of the tree, so that nobody else is in it.
    """
    own_session = os.getsid(0)
    groups: dict[int, list[RunningProcess]] = {}
    for member in members:
        if member.session in (0, own_session):
            send_signal(member, number)
        else:
            groups.setdefault(member.group, []).append(member)
    for group, seen in groups.items():
        if still_running(seen):  # any: of what multiplies most have ended by now; or the number may be another group's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
