"""Running processes: who started whom, in which group, with which marks and pipes, and the end of whole trees of them.

The rule: a look is old at once. Before a process is signalled it is checked to be the one that was seen. A number alone
is no process, since the system gives numbers again; what counts is the number together with the time of its start.

A tree is known by a mark in the environment that each process inherits. What clears its environment is still found by
its parent, group, session or the output pipe that it holds; only what has shed all of these gets away, and a sandbox
with its own process numbers is the boundary for that.

A look reads a file of every process of the machine, and more of those that started after panpan: no other can come from
it. When eight tools are ended at once, each of them wants to look several times; one look after the other in turn
serves them all.
"""

import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import CancelScope, to_thread
from anyio.lowlevel import RunVar

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MARKS_VARIABLE = "PANPAN_PROCESS_MARKS"
"""Holds the marks of all trees that a process belongs to, the outermost first, separated by colons."""

_PROC = Path("/proc")
_DEAD = frozenset("ZX")
_MARKS = compile_late(rf"\b{MARKS_VARIABLE}=([0-9a-f:]+)".encode())
_PIPE = compile_late(r"pipe:\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Origin:
    """Signs of where a process comes from."""

    marks: frozenset[str] = frozenset()
    """Marks in the environment that it was started with. Processes of other users hide it; so do those of the system on
    macOS."""
    output_pipes: frozenset[int] = frozenset()
    """Inodes of the pipes that it writes its output and its errors to, where that can be seen."""


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """One process as it was seen."""

    pid: int
    parent: int
    group: int
    session: int
    started: str
    """Tells it from a later process with the same number."""
    name: str
    origin: Origin = Origin()
    threads: int = 1
    """Number of its threads, where that can be seen."""

    @property
    def marks(self) -> frozenset[str]:
        return self.origin.marks


def running_processes(*, tells_older: bool = True) -> dict[int, RunningProcess]:
    """Return all processes by number, without those that are dead and not yet collected.

    Without `tells_older`, those that started before this process may have no `Origin`.
    """
    if _has_proc():
        seen = [one for name in os.listdir(_PROC) if name.isdigit() and (one := _seen(name))]  # noqa: PTH208
        own = None if tells_older else _seen("self")
        since = 0 if own is None else int(own.started)
        newer = _with_origins(one for one in seen if int(one.started) >= since)
        return {one.pid: one for one in (*seen, *newer)}
    marks = dict(_marks_from_ps())
    listed = parse_ps(_ps("-axo", "pid=,ppid=,pgid=,sess=,stat=,lstart=,comm="))
    return {one.pid: replace(one, origin=Origin(marks.get(one.pid, frozenset()))) for one in listed}


def running_process(pid: int) -> RunningProcess | None:
    """Return one process without what tells from whom it comes; None if there is none with this number."""
    return _seen(str(pid)) if _has_proc() else running_processes().get(pid)


def still_running(processes: Sequence[RunningProcess]) -> list[RunningProcess]:
    """Return those that are still alive; looks at no other process where the system can tell of one."""
    if _has_proc():
        now = {process.pid: _seen(str(process.pid)) for process in processes}
    else:
        now = dict[int, RunningProcess | None](running_processes())
    return [process for process in processes if _is_same(process, now.get(process.pid))]


def send_signal(process: RunningProcess, number: signal.Signals) -> None:
    """Signal the process if it is still the one that was seen; nothing happens where it is gone or another user's."""
    with suppress(ProcessLookupError, PermissionError):
        if not _has_proc() or not hasattr(os, "pidfd_open"):
            os.kill(process.pid, number)
            return
        fd = os.pidfd_open(process.pid)
        try:
            # The descriptor pins one process, so the check cannot be outrun from here on.
            if _is_same(process, _seen(str(process.pid))):
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)


def parse_ps(text: str) -> Iterator[RunningProcess]:
    """Yield the processes in what `ps -o pid=,ppid=,pgid=,sess=,stat=,lstart=,comm=` prints (lstart has five words)."""
    for line in text.splitlines():
        words = line.split(maxsplit=10)
        if len(words) < 11 or words[4][0] in _DEAD or not all(word.isdigit() for word in words[:3]):
            continue
        pid, parent, group = (int(word) for word in words[:3])
        # macOS prints an address for the session; the leader's group serves the same purpose.
        session = int(words[3]) if words[3].isdigit() and words[3] != "0" else group
        yield RunningProcess(pid, parent, group, session, " ".join(words[5:10]), words[10])


def _has_proc() -> bool:
    return (_PROC / "self" / "stat").exists()


def _is_same(process: RunningProcess, seen: RunningProcess | None) -> bool:
    return seen is not None and seen.started == process.started


def _with_origins(processes: Iterable[RunningProcess]) -> Iterator[RunningProcess]:
    """Yield the processes with what tells from whom they come.

    A session is one process and what came from it, so one that tells speaks for all of it, but in our own, where trees
    begin. To read the environment of a process that forks takes long, and beside a fork bomb there are thousands.
    """
    mixed = (0, os.getsid(0))  # 0 is all sessions outside, in a box with process numbers of its own
    marks_of: dict[int, frozenset[str]] = {}
    for process in processes:
        if marks := marks_of.get(process.session):
            yield replace(process, origin=Origin(marks))
            continue
        told = _with_origin(process)
        if told.marks and told.session not in mixed:
            marks_of[told.session] = told.marks
        yield told


def _with_origin(process: RunningProcess) -> RunningProcess:
    place = f"{_PROC}/{process.pid}"
    environment, pipes = b"", set[int]()
    with suppress(OSError):
        environment = _content(f"{place}/environ")
    for fd in ("1", "2"):
        with suppress(OSError):
            if pipe := _PIPE.fullmatch(os.readlink(f"{place}/fd/{fd}")):  # noqa: PTH115
                pipes.add(int(pipe[1]))
    return replace(process, origin=Origin(_marks_in(environment), frozenset(pipes)))


def _marks_in(environment: bytes) -> frozenset[str]:
    return frozenset(mark for marks in _MARKS.findall(environment) for mark in marks.decode().split(":"))


def _marks_from_ps() -> Iterator[tuple[int, frozenset[str]]]:
    for line in _ps("-axEww", "-o", "pid=,command=").splitlines():
        words = line.split(maxsplit=1)
        if words and words[0].isdigit():
            yield int(words[0]), _marks_in(line.encode(errors="replace"))


def _content(path: str) -> bytes:
    """Return what a file holds; for each process of the machine, a `Path` would take twenty times as long."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))
    finally:
        os.close(fd)


def _seen(pid: str) -> RunningProcess | None:
    try:
        line = _content(f"{_PROC}/{pid}/stat").decode(errors="replace")
    except OSError:
        return None
    # The name is in brackets and may contain anything, brackets and blanks included (proc(5)).
    before, _, after = line.rpartition(")")
    fields = after.split()
    if fields[0] in _DEAD:
        return None
    return RunningProcess(
        pid=int(before.partition(" ")[0]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=fields[19],
        threads=int(fields[17]),
        name=before.partition("(")[2],
    )


def _ps(*arguments: str) -> str:
    """Return what `ps` prints, on systems without /proc such as macOS; synchronous, as a look at /proc is.

    Not by the process runner, which asks this module what to end.
    """
    try:
        found = subprocess.run(["/bin/ps", *arguments], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.decode(errors="replace")


_POLL_S = 0.2
"""Between looks, where the system cannot say by itself when it ends."""


async def wait_for_exit(process: RunningProcess) -> None:
    """Return when a process has ended, whoever started it."""
    while still_running([process]):
        try:
            fd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # not Linux, just ended, or no descriptor left
            await anyio.sleep(_POLL_S)
            continue
        try:
            if still_running([process]):  # the descriptor pins one process; only now it is surely this one
                await anyio.wait_readable(fd)
        finally:
            anyio.notify_closing(fd)
            os.close(fd)


def reap(pid: int) -> int | None:
    """Return the exit code of a child of ours that has ended, as a shell tells it, and let the system forget it.

    None if it runs on, was collected before, or is no child of ours.
    """
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    if not ended:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def reap_later(pid: int) -> None:
    """Let the system forget a child of ours when it ends, although no caller waits for it any more.

    A thread waits for it, and ends with panpan if that is first.
    """

    def wait() -> None:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)

    threading.Thread(target=wait, name="panpan-reaper", daemon=True).start()


_Seen = TypeVar("_Seen")


class ProcessScans:
    """Looks, one after the other; a caller that comes during a look gets the next one."""

    def __init__(self, scan: Callable[[], Mapping[int, RunningProcess]] = running_processes) -> None:
        self._scan = scan
        self._one_at_a_time = anyio.Lock()
        self._limiter = anyio.CapacityLimiter(1)
        self._begun = 0
        self._done = 0
        """Number of the newest look that was finished."""
        self._seen: Mapping[int, RunningProcess] = {}

    async def next(self) -> Mapping[int, RunningProcess]:
        """Return what a look saw that began no earlier than now."""
        wanted = self._begun + 1
        async with self._one_at_a_time:
            if self._done < wanted:
                self._begun = number = self._begun + 1
                self._seen = await in_a_thread(self._scan, self._limiter)
                self._done = number
            return self._seen


_looks: RunVar[Mapping[bool, ProcessScans]] = RunVar("looks")
"""Looks of the running event loop, by whether they tell of older processes; they end with the loop."""


async def look(*, tells_older: bool = True) -> Mapping[int, RunningProcess]:
    """Return what `running_processes` does, as it is now or a moment later; others get the same mapping."""
    try:
        looks = _looks.get()
    except LookupError:
        looks = {told: ProcessScans(partial(running_processes, tells_older=told)) for told in (False, True)}
        _looks.set(looks)
    return await looks[tells_older].next()


async def in_a_thread(scan: Callable[[], _Seen], limiter: anyio.CapacityLimiter) -> _Seen:
    """Return what `scan` sees; it looks on the spot where the machine has no thread left, as beside a fork bomb.

    Give it a limiter that nothing else waits for: the common one may be full of threads that hang on a dead disk.
    """
    try:
        return await to_thread.run_sync(scan, limiter=limiter)
    except RuntimeError as exc:
        if "start new thread" not in str(exc):
            raise
        return scan()


KILL_LIMIT_S = 2.0
"""Time for which the tree is killed again and again, should it start new processes faster than they are found."""
STOP_LIMIT_S = 3.0
"""Time for which a tree that outlived TERM is stopped before it is killed; one that multiplies needs several looks."""

_END_POLL_S = 0.02
_KILL_AGAIN_S = 0.1
"""Seconds after which killed processes that are still there are looked for again, with those that they have started."""


def with_mark(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return `env` with a further mark behind those that it or our own environment has."""
    marks = env.get(MARKS_VARIABLE) or os.environ.get(MARKS_VARIABLE, "")
    return {**env, MARKS_VARIABLE: f"{marks}:{mark}" if marks else mark}


class ProcessTree:
    """All processes started with its mark, and what they started.

    A session marks the environment of all its commands (`marked`), so that at its `end` none of them survives.

    Args:
        mark: That of a tree whose panpan is gone; a new one, if not given.
        scan: Returns all processes of the machine by their numbers; as `look` does, if not given.
    """

    def __init__(
        self, mark: str = "", scan: Callable[[], Awaitable[Mapping[int, RunningProcess]]] | None = None
    ) -> None:
        self.mark = mark or secrets.token_hex(16)
        self._has_older = bool(mark)
        self.has_processes = bool(mark)
        """True if anything was ever started with the mark; a look is spared where nothing was."""
        self._look = scan or partial(look, tells_older=self._has_older)
        self._root_pid: int | None = None
        self._pipe_inodes: tuple[int, ...] = ()

    def marked(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return `env` with the mark, so that what is started with it belongs to the tree."""
        self.has_processes = True
        return with_mark(env, self.mark)

    def root_at(self, pid: int, pipe_inodes: tuple[int, ...] = ()) -> None:
        """Count also the descendants of `pid`, which leads its own session, its group, and the holders of these pipes.

        Only the tree may write to the pipes.
        """
        self.has_processes = True
        self._root_pid = pid
        self._pipe_inodes = pipe_inodes

    async def look(self) -> list[RunningProcess]:
        """Return what is alive of the tree, as `members` does, without holding up anything else."""
        return self._members_of(await self._look())

    def members(self) -> list[RunningProcess]:
        """Return what is alive of the tree. Takes some milliseconds: it looks at every process of the machine."""
        return self._members_of(running_processes(tells_older=self._has_older))

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
        """End every process of the tree, and return those that could not be ended, such as another user's.

        It cannot be cancelled, and takes at most `grace_s` and some seconds.

        Args:
            grace_s: Seconds between asking them to end (TERM) and killing them; 0 kills them at once.
        """
        if not self.has_processes:
            return []  # skips a look at every process of the machine in sessions that ran no command
        with CancelScope(shield=True):
            remaining = await (self._signal_all(signal.SIGTERM) if grace_s > 0 else self.look())
            with anyio.move_on_after(grace_s):
                while remaining:
                    remaining = await self._outlived_by(remaining)
            with anyio.move_on_after(STOP_LIMIT_S):
                remaining = await self._stopped(remaining)
            _signal_groups(remaining, signal.SIGKILL)  # at least these, however long another look takes
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
            await anyio.sleep(_END_POLL_S)
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
        members = self._members_of(await self._look(), known)
        if number is not signal.SIGTERM:
            _signal_groups(members, number)
            return members
        for member in members:
            send_signal(member, number)
            send_signal(member, signal.SIGCONT)  # a stopped process would not notice
        return members

    def _belongs(self, process: RunningProcess) -> bool:
        """True if the process itself tells that it belongs to the tree; what it started belongs to it, too."""
        root = self._root_pid
        if root is not None and root in (process.pid, process.group, process.session):
            return True
        return self.mark in process.marks or not process.origin.output_pipes.isdisjoint(self._pipe_inodes)


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
        if still_running(seen):  # most of a fork bomb have ended by now; the number may be another group's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
