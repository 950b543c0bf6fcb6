"""Advisory locks between processes: one at a time for a shared file, and one writer at a time for a user's file.

The rule: the file of `hold_lock` is made for the purpose and never removed or renamed, since a lock belongs to the file
and not to its name. The lock goes with the process, however that ends. Its holder is told to people and decides
nothing: a process may end while it is named.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.read_file import opened_folder, status_of
from panpan.types.dataclass import dataclass

_POLL_S = 0.01
_UNSUPPORTED = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class LockHeldError(PanpanError):
    """Another process holds the lock on the file `path`: `pid`, where that is known."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{path} is locked by {holder}; wait for it or end it")
        self.path = path
        self.pid = pid


class LockUnsupportedError(PanpanError):
    """The file system has no locks; the caller decides whether to go on without."""


@contextmanager
def hold_lock(path: Path, *, wait_s: float, lock: Callable[[int, int], None] = fcntl.flock) -> Iterator[None]:
    """Hold the lock on the file `path` for the block.

    It blocks the thread while it waits: call it from a worker thread, or with `wait_s=0`, which tries once.

    Args:
        path: The lock file; made, private, where it is missing.
        wait_s: Seconds to wait for another holder.
        lock: The system's call; a seam for tests.

    Raises:
        LockHeldError: Another holder did not let go in time.
        LockUnsupportedError: The file system has no locks.
        ConfigError: The lock file cannot be made, or is not a regular file.
    """
    fd = _acquire(path, time.monotonic() + wait_s, lock)
    try:
        yield
    finally:
        os.close(fd)


def is_locked(path: Path) -> bool:
    """True if any process holds the lock on a file or folder.

    False if there is no such file, it cannot be looked at, or its file system has no locks.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def _acquire(path: Path, deadline: float, lock: Callable[[int, int], None]) -> int:
    if not path.parent.exists():
        make_private_folder(path.parent)
    while True:
        try:
            fd = open_private_file(path, os.O_RDWR | os.O_CREAT)
        except OSError as exc:
            raise ConfigError(f"cannot open the lock file {path}: {exc.strerror}") from exc
        try:
            if _try_lock(fd, path, lock) and _is_still(fd, path):
                with suppress(OSError):  # only for messages; on a full disk nobody is named
                    os.ftruncate(fd, 0)
                    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
                return fd
            holder = os.pread(fd, 32, 0).strip()
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if time.monotonic() >= deadline:
            raise LockHeldError(path, int(holder) if holder.isdigit() else None)
        time.sleep(_POLL_S)


def _try_lock(fd: int, path: Path, lock: Callable[[int, int], None]) -> bool:
    try:
        lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as exc:
        if exc.errno in _UNSUPPORTED:
            raise LockUnsupportedError(f"{path} is on a file system without locks: {exc.strerror}") from exc
        raise
    return True


def _is_still(fd: int, path: Path) -> bool:
    """True if the name still means the locked file; it may have been removed meanwhile."""
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(fd))


_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A process that holds a lock."""

    pid: int
    command: str
    """Its words joined by blanks, not cleaned for a terminal; empty if the system does not tell."""
    started_at: float | None
    """Seconds since 1970."""


def lock_holder(fd: int, *, proc: Path = _PROC) -> LockHolder | None:
    """Return a process that holds a `flock` on an open file; None if the system does not tell."""
    status = os.fstat(fd)
    for pid in _pids_with_lock_on(status.st_ino, proc):
        # file systems differ in the device that the table shows, so confirm with the process itself
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
    except PermissionError:  # another panpan, which hides itself (`hide_process`): trust the table
        return True
    except OSError:  # it has ended
        return False
    for descriptor in descriptors:
        with suppress(OSError):
            if os.path.samestat(descriptor.stat(), status):
                return True
    return False


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words)


def _started_at(proc: Path, pid: int) -> float | None:
    """Return the start of a process: field 22 of its `stat`, in ticks since the system's own (proc_pid_stat(5))."""
    try:
        ticks = int((proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19])
        booted_at = next(
            int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line.startswith("btime ")
        )
        return booted_at + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None


_PATIENCE_S = 5.0
_PAUSE_S = 0.005


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the file at the canonical `path` for the time of the block; without effect where there is none to hold.

    It keeps writers of one file apart between the check of its old content and the rename of the new one. The lock lies
    on the old file itself, so it leaves nothing behind. After the rename it guards a file that has no name any more, so
    a waiting process looks again which file the path leads to. It blocks the thread.

    What remains: a program that takes no lock, such as an editor or a command, can write in the instant between the
    comparison and the rename, some microseconds, and what it wrote is lost then. Files have no operation that compares
    and replaces in one.

    Raises:
        ToolError: Another program has held it for seconds.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        fd = _opened(path)
        if fd is None:
            yield
            return
        try:
            _acquire_writer(fd, path, deadline)
            if _is_still_at(fd, path):
                yield
                return
        finally:
            os.close(fd)


def _opened(path: Path) -> int | None:
    try:
        with opened_folder(path.parent) as folder:
            return os.open(path.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return None


def _acquire_writer(fd: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            if exc.errno not in {errno.EAGAIN, errno.EACCES}:
                return  # a file system without locks; the digest still detects earlier changes
            if time.monotonic() > deadline:
                raise ToolError(f"{path} is locked by another program; try again when it has let go") from exc
            time.sleep(_PAUSE_S)
        else:
            return


def _is_still_at(fd: int, path: Path) -> bool:
    """True if `path` still leads to the open file; not so after a rename over it."""
    try:
        there = status_of(path)
    except OSError:
        return True  # it was deleted; the write itself reports it
    here = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
