"""Which process holds a lock on a file, where the system tells: Linux does, in /proc/locks.

It is told to people and decides nothing: a process may end while it is named.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from panpan.types.dataclass import dataclass

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A process that holds a lock."""

    pid: int
    command: str
    """Its words joined by blanks, not cleaned for a terminal; empty where the system does not tell."""
    started_at: float | None
    """When it was started, in seconds since 1970."""


def lock_holder(fd: int, *, proc: Path = _PROC) -> LockHolder | None:
    """Return a process that holds a `flock` on an open file; None where the system does not tell.

    Args:
        fd: The file, opened in this process.
        proc: Where the system tells of processes.
    """
    status = os.fstat(fd)
    for pid in _pids_with_lock_on(status.st_ino, proc):
        # file systems differ in which device they name in the table, so the process itself has to confirm it
        if _has_open(proc / str(pid), status):
            return LockHolder(pid, _command(proc / str(pid)), _started_at(proc, pid))
    return None


def _pids_with_lock_on(inode: int, proc: Path) -> Iterator[int]:
    """Yield the processes in lines such as `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF` (proc_locks(5))."""
    try:
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        match line.split():
            case [_, "FLOCK", _, "WRITE", pid, place, *_] if place.endswith(f":{inode}") and pid.isdigit():
                yield int(pid)


def _has_open(process: Path, status: os.stat_result) -> bool:
    try:
        descriptors = list((process / "fd").iterdir())
    except PermissionError:  # another panpan, which keeps others from looking (`hide_process`): the table has to do
        return True
    except OSError:  # gone
        return False
    return any(_is_same(descriptor, status) for descriptor in descriptors)


def _is_same(descriptor: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(descriptor.stat(), status)
    except OSError:
        return False


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words)


def _started_at(proc: Path, pid: int) -> float | None:
    """Return when a process was started: field 22 of its `stat`, in ticks since the system was (proc_pid_stat(5))."""
    try:
        ticks = int((proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19])
        booted_at = next(
            int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line.startswith("btime ")
        )
        return booted_at + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
