"""Where sessions lie: one folder a project, one file a session; and how one is put away."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from panpan.errors import SessionError
from panpan.session.log.session_log import describe_lock_owner
from panpan.system.files.file_lock import lock_holder
from panpan.system.files.folder_tree import make_private_folder, open_private_file

ARCHIVE = "archive"
"""Folder within a project's session folder, for sessions that no list shows."""


def session_path(folder: Path, session_id: str) -> Path:
    """Return the log of the session `session_id` in a project's session folder."""
    return folder / f"{session_id}.jsonl"


def newest_session(folder: Path) -> Path:
    """Return the log that was written last, or raise SessionError."""
    logs = newest_first(folder.glob("*.jsonl"))
    if not logs:
        raise SessionError("there is no session to continue in this folder; start one without -c")
    return logs[0]


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Return the logs in which something was written, that which was written last first."""
    logs = [(written_at, path) for path in paths if (written_at := _written_at(path)) is not None]
    return [path for _, path in sorted(logs, reverse=True)]


def logs_of_all_projects(home: Path) -> Iterator[Path]:
    """Yield the logs below the panpan home, in no order."""
    return home.glob("projects/*/sessions/*.jsonl")


def archived_logs(home: Path) -> Iterator[Path]:
    """Yield the logs below the panpan home that were put away, in no order."""
    return home.glob(f"projects/*/sessions/{ARCHIVE}/*.jsonl")


def _written_at(path: Path) -> int | None:
    """Return when the log was last written, in nanoseconds; None if it is empty, no file or not there any more.

    A link is no log: it is not followed when a session is opened, either.
    """
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime_ns if status.st_size and S_ISREG(status.st_mode) else None


def archive(log: Path) -> Path:
    """Put a session away, and return where its log is now; SessionError if it is open or cannot be moved."""
    folder = log.parent / ARCHIVE
    make_private_folder(folder)
    return _moved(log, folder / log.name)


def restore(log: Path) -> Path:
    """Bring back a session that was put away, and return where its log is now; SessionError if it cannot be moved."""
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
    try:
        fd = open_private_file(log, os.O_RDWR)
    except OSError as error:
        raise SessionError(f"cannot open the session log {log}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = describe_lock_owner(lock_holder(fd))
            raise SessionError(f"the session {log.stem} is open in a panpan{holder}; close it there first") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(fd)
