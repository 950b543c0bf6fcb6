"""The session's log: an append-only file of JSON lines, with one writer.

Nothing in it is ever rewritten. A record is one `write`; what a crash tore stays where it is, and the next record
begins on a line of its own. When the disk is full, records wait in memory, in order, and go out first when there is
space again, so that the file never has a gap.
"""

import fcntl
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from panpan.errors import ConfigError, SessionError, SessionLogError
from panpan.services.sessions.holder_text import in_brackets
from panpan.services.sessions.records import FORMAT_VERSION, encoded, timestamp
from panpan.system.lock_holder import lock_holder
from panpan.system.private import make_private_folder, open_private_file


class SessionLog:
    """The log of one session, open for writing; held by this process alone until it is closed.

    Args:
        path: The file; made with its folders where it does not exist.
        session_id: Written into each record.
        cwd: Working directory, written into each record.
        git_branch: Branch at the start, written into each record.

    Raises:
        SessionError: Another process holds the session, or the file cannot be opened.
    """

    def __init__(self, path: Path, *, session_id: str, cwd: Path, git_branch: str = "") -> None:
        self.path = path
        self._base = {
            "sessionId": session_id,
            "cwd": str(cwd),
            "gitBranch": git_branch,
            "version": FORMAT_VERSION,
        }
        self._waiting: deque[bytes] = deque()
        try:
            make_private_folder(path.parent)
            self._fd = open_private_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except ConfigError as error:
            raise SessionError(f"{error}; the variable PANPAN_HOME can name another place for sessions") from error
        except OSError as error:
            raise SessionError(f"cannot open the session log {path}: {error.strerror}") from error
        try:
            self._lock()
            self._is_torn = _ends_in_mid_line(self._fd)
        except BaseException:
            os.close(self._fd)
            raise
        self.parent_uuid: str | None = None
        """The record that the next one follows."""
        self.listener: Callable[[Mapping[str, Any]], None] = lambda _: None
        """Told each record, whole, before it is written."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record that follows the one before.

        Raises:
            SessionLogError: It could not be written; it is written before the next one.
        """
        whole = {"parentUuid": self.parent_uuid, **self._base, "timestamp": timestamp(), **record}
        self.parent_uuid = record["uuid"]
        self._waiting.append(encoded(whole))
        self.listener(whole)
        self.flush()

    def flush(self) -> None:
        """Write what could not be written before.

        Raises:
            SessionLogError: It still cannot be written.
        """
        while self._waiting:
            self._write(self._waiting[0])
            self._waiting.popleft()

    def sync(self) -> None:
        """Make what was written durable; blocks for some milliseconds.

        Raises:
            SessionLogError: The disk reports an error.
        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise SessionLogError(f"the session log {self.path} may not be on disk: {error.strerror}") from error

    def close(self) -> None:
        """Write what waits, and give the file back; the lock goes with it.

        A session in which nothing was said leaves no file.

        Raises:
            SessionLogError: What waits still cannot be written, and is lost.
        """
        try:
            self.flush()
        except SessionLogError as error:
            raise SessionLogError(f"{len(self._waiting)} records of the session are lost: {error}") from error
        finally:
            if os.fstat(self._fd).st_size == 0:
                self.path.unlink(missing_ok=True)
            os.close(self._fd)

    def _write(self, line: bytes) -> None:
        data = b"\n" + line if self._is_torn else line
        self._is_torn = True
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            self._is_torn = self._is_torn if written else _ends_in_mid_line(self._fd)
            raise SessionLogError(
                f"the session log {self.path} cannot be written: {error.strerror}; "
                "what was said since is kept in memory and written as soon as it can be"
            ) from error
        self._is_torn = False

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SessionError(
                f"the session {self._base['sessionId']} is open in another panpan{in_brackets(lock_holder(self._fd))}; "
                "close it there, or start a new one"
            ) from None
        except OSError:
            pass  # a file system without locks; appending is still whole records


def read_records(
    path: Path,
    *,
    note_damage: Callable[[int], object] = lambda _: None,
    only: Callable[[bytes], bool] = lambda _: True,
) -> Iterator[dict[str, Any]]:
    """Yield the records of a log in the order they were written; lines that are torn or damaged are passed over.

    Args:
        path: The file.
        note_damage: Told the number of each line that is passed over, counted from 1; not of a last one without an
            end, which a crash leaves.
        only: Whether a line is wanted; the others are not parsed.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):  # binary files are split at b"\n" only
                if not only(line):
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if isinstance(record, dict) and isinstance(record.get("uuid"), str):
                    yield record
                elif line.strip() and line.endswith(b"\n"):
                    note_damage(number)
    except OSError as error:
        raise SessionError(f"cannot read the session log {path}: {error.strerror}") from error


def _ends_in_mid_line(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size > 0 and os.pread(fd, 1, size - 1) != b"\n"
