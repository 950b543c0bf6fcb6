"""Where sessions lie: one folder a project, one file a session."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISREG

from panpan.errors import SessionError

ARCHIVE = "archive"
"""Folder within a project's session folder, for sessions that no list shows."""


def session_path(folder: Path, session_id: str) -> Path:
    """Return the log of the session `session_id` in a project's session folder."""
    return folder / f"{session_id}.jsonl"


def newest_session(folder: Path) -> Path:
    """Return the log that was written last.

    Raises:
        SessionError: There is none.
    """
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
    """Return when the log was last written, in nanoseconds; None where it is empty, no file or not there any more.

    A link is no log: it is not followed when a session is opened, either.
    """
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime_ns if status.st_size and S_ISREG(status.st_mode) else None
