"""Putting a session away, so that no list shows it, and bringing it back; nothing is ever deleted."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from panpan.errors import SessionError
from panpan.session.holder_text import in_brackets
from panpan.session.store import ARCHIVE
from panpan.system.files.file_lock import lock_holder
from panpan.system.files.folder_tree import make_private_folder, open_private_file


def archive(log: Path) -> Path:
    """Put a session away, and return where its log is now.

    Raises:
        SessionError: It is open in a panpan, or cannot be moved.
    """
    folder = log.parent / ARCHIVE
    make_private_folder(folder)
    return _moved(log, folder / log.name)


def restore(log: Path) -> Path:
    """Bring back a session that was put away, and return where its log is now.

    Raises:
        SessionError: It cannot be moved.
    """
    return _moved(log, log.parent.parent / log.name)


def _moved(log: Path, target: Path) -> Path:
    with _held(log):
        if target.exists():
            raise SessionError(f"{target} exists already; nothing was moved")
        try:
            log.rename(target)
        except OSError as error:
            raise SessionError(f"the session {log.stem} cannot be moved to {target}: {error.strerror}") from error
    return target


@contextmanager
def _held(log: Path) -> Iterator[None]:
    """Hold the session, so that no panpan opens it meanwhile."""
    try:
        fd = open_private_file(log, os.O_RDWR)
    except OSError as error:
        raise SessionError(f"cannot open the session log {log}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = in_brackets(lock_holder(fd))
            raise SessionError(f"the session {log.stem} is open in a panpan{holder}; close it there first") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(fd)
