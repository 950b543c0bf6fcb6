"""Keeping writers of one file apart between the check of its old content and the rename of the new one.

The lock is advisory and lies on the old file itself, so it works between threads and between processes, leaves nothing
behind, and ends with its holder. After the rename it guards a file that has no name any more, so whoever waited looks
again which file the path leads to. Synchronous: it may wait.

What remains: a program that takes no lock, such as an editor or a command, can write in the instant between the
comparison and the rename, some microseconds, and what it wrote is lost then. Files have no operation that compares and
replaces in one.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.beneath import opened_folder, status_of

_PATIENCE_S = 5.0
_PAUSE_S = 0.005


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file at the canonical `path` for the time of the block; without effect where there is none to hold.

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
            _acquire(fd, path, deadline)
            if _is_still_at(fd, path):
                yield
                return
        finally:
            os.close(fd)


def _opened(path: Path) -> int | None:
    """Return a descriptor, None where the file is missing or closed to us; the write itself says so."""
    try:
        with opened_folder(path.parent) as folder:
            return os.open(path.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return None


def _acquire(fd: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            if exc.errno not in {errno.EAGAIN, errno.EACCES}:
                return  # a file system without locks; the digest still tells changes that came before
            if time.monotonic() > deadline:
                raise ToolError(f"{path} is locked by another program; try again when it has let go") from exc
            time.sleep(_PAUSE_S)
        else:
            return


def _is_still_at(fd: int, path: Path) -> bool:
    """Return whether `path` still leads to the open file; not so after a rename over it."""
    try:
        there = status_of(path)
    except OSError:
        return True  # it is gone; the write itself says so
    here = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
