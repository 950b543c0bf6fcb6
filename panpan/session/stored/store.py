"""Storage of sessions: one folder per project, one file per session; archiving.

A summary is what the first and last records of one tell.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import Any

from panpan.errors import SessionError
from panpan.session.log.session_log import describe_lock_owner, open_to_read, parse_line
from panpan.system.files.file_lock import lock_holder
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.types.dataclass import dataclass

MAX_BYTES = 20_000_000
"""Most bytes of a log that are read for its summary, which takes some 20 ms; most sessions write less."""

MAX_PROMPT_CHARS = 500

LATEST_TIME = 253_402_000_000.0
"""Seconds since 1970 at the end of the year 9999. File systems take later times, which no calendar has."""

_TYPE = b'"type":'
"""Bytes of each record that come before any nested record, as `records.encoded` writes it. In the model's text, its
quotes would be escaped."""

_REPLY = b'"type":"assistant","uuid":'
"""Bytes of each record of a reply, in the same way."""

_OPENED = b'"type":"system","subtype":"opened","uuid":'

_TITLE = b'"type":"summary","uuid":'


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session of a list."""

    id: str
    path: Path
    written_at: float
    """Time of the last write to its log, in seconds since 1970."""
    cwd: str
    """The folder that it was begun in; empty if the log does not say."""
    prompt: str
    """First line of the user's first message; empty if the log does not say. Not cleaned for a terminal."""
    title: str
    """Title; empty if nobody has given it one, or the log does not say. Not cleaned for a terminal."""
    rounds: int
    is_counted: bool
    """True if all of the log was read; if not, there may be more rounds."""
    is_interactive: bool = True
    """True if it was ever open on a terminal; False if only runs with -p, a pipe or from Python used it."""


def summary_of(path: Path) -> SessionSummary | None:
    """Return what the log tells; None if it is not a regular file, or cannot be read any more."""
    cwd = prompt = title = ""
    rounds = read = 0
    is_interactive = True
    try:
        with open_to_read(path) as file:
            status = os.fstat(file.fileno())
            while line := file.readline(MAX_BYTES - read):
                read += len(line)
                rounds += _is_of(_REPLY, line)
                if _is_of(_OPENED, line):
                    is_interactive = _record(line).get("interactive") is not False
                if _is_of(_TITLE, line):
                    title = _text(_record(line), "summary")[:MAX_PROMPT_CHARS] or title
                if not (cwd and prompt):
                    record = _record(line)
                    cwd = cwd or _text(record, "cwd")
                    prompt = prompt or _first_line(record)
    except OSError:
        return None
    is_counted = read >= status.st_size
    written_at = min(max(status.st_mtime, 0.0), LATEST_TIME)
    return SessionSummary(path.stem, path, written_at, cwd, prompt, title, rounds, is_counted, is_interactive)


def _is_of(kind: bytes, line: bytes) -> bool:
    """Return True if a record is of a kind, and does not only hold one that is, as a title holds a reply."""
    place = line.find(kind)
    return place >= 0 and place == line.find(_TYPE)


def _record(line: bytes) -> Mapping[str, Any]:
    return parse_line(line) or {}


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record.get(name)
    return text if isinstance(text, str) else ""


def _first_line(record: Mapping[str, Any]) -> str:
    match record:
        case {"type": "user", "message": {"content": [*blocks]}}:
            texts = [
                block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
            ]
            lines = [line.strip() for text in texts for line in text.splitlines()]
            return next((line[:MAX_PROMPT_CHARS] for line in lines if line), "")
        case _:
            return ""


ARCHIVE = "archive"
"""Folder within a project's session folder, for sessions that no list shows."""


def session_path(folder: Path, session_id: str) -> Path:
    """Return the log of the session `session_id` in a project's session folder."""
    return folder / f"{session_id}.jsonl"


def newest_session(folder: Path) -> Path:
    """Return the log that was written last, or raise SessionError."""
    logs = newest_first(folder.glob("*.jsonl"))
    if not logs:
        raise SessionError("this folder has no session; `panpan sessions --all` lists those of other folders")
    return logs[0]


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Return the logs in which something was written, that which was written last first."""
    logs = [(written_at, path) for path in paths if (written_at := _written_at(path)) is not None]
    return [path for _, path in sorted(logs, reverse=True)]


def logs_of_all_projects(home: Path, session_id: str = "*") -> Iterator[Path]:
    """Yield the logs below the panpan home, in no order; only those of one session if an id is given."""
    return home.glob(f"projects/*/sessions/{session_id}.jsonl")


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
