"""The session's log: an append-only file of JSON lines, with one writer, and how its lines are read.

Nothing in it is ever rewritten. A record is one `write`; what a crash tore stays where it is, and the next record
begins on a line of its own. When the disk is full, records wait in memory, in order, and go out first when there is
space again, so that the file never has a gap. Only a regular file is read, and no record that is nested so deeply, or
so large, that a reader could fail.
"""

import errno
import fcntl
import json
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from panpan.errors import ConfigError, SessionError, SessionHeldError, SessionLogError, SessionVanishedError
from panpan.session.log.records import FORMAT_VERSION, encode_record, timestamp, viewer_fields
from panpan.system.files.file_lock import LockHolder, lock_holder
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_line
from panpan.types.pattern import compile_late
from panpan.version import __version__

MAX_DEPTH = 100
"""Deepest nesting of lists and objects; arguments of tools come nowhere near."""

MAX_LINE_BYTES = 100_000_000
"""No provider takes a request of a third of that, so no message has it."""

_BEGINNING_BYTES = 100
"""Bytes that are kept of a line that is too large; it is no record."""


def open_to_read(path: Path) -> BinaryIO:
    """Open a log; OSError if its path is no regular file but, say, a FIFO, on which a read would wait."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def lines_of(file: BinaryIO, *, most_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[bytes, int]]:
    """Yield each further line of a file with its size; of one over `most_bytes`, only its beginning."""
    while line := file.readline(most_bytes):
        size = len(line)
        rest = line
        while len(rest) == most_bytes and not rest.endswith(b"\n"):
            rest = file.readline(most_bytes)
            size += len(rest)
        yield (line, size) if rest is line else (line[:_BEGINNING_BYTES] + rest[-1:], size)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the object that a line holds; None if it holds none, or one that is nested too deeply."""
    has_no_number = b"NaN" in line or b"Infinity" in line  # Python parses these, providers do not
    try:
        value = json.loads(line, parse_constant=lambda _: None) if has_no_number else json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    is_surely_flat = line.count(b"{") + line.count(b"[") <= MAX_DEPTH  # almost every line, decided quickly
    return value if is_surely_flat or _is_flat(value) else None


def _is_flat(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for one in level for item in _items(one)]
        if not level:
            return True
    return False


def _items(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, dict | list)]


MAX_COMMAND_CHARS = 80

_KEY_OPTION = compile_late(r"(--api-key[ =])\S+")


def describe_lock_owner(holder: LockHolder | None) -> str:
    """Describe it, such as ` (process 7, running since 2026-11-22 09:00: panpan -c)`; empty if it is unknown."""
    if holder is None:
        return ""
    since = ""
    if holder.started_at is not None:
        since = f", running since {datetime.fromtimestamp(holder.started_at).strftime('%Y-%m-%d %H:%M')}"
    command = Redactor().redact(_KEY_OPTION.sub(r"\1[redacted]", clean_line(holder.command)))
    shown = command if len(command) <= MAX_COMMAND_CHARS else f"{command[: MAX_COMMAND_CHARS - 1]}…"
    return f" (process {holder.pid}{since}{f': {shown}' if shown else ''})"


class SessionLog:
    """The log of one session, open for writing; held by this process alone until it is closed.

    Args:
        path: The file; made with its folders where it does not exist, unless it `must_exist`.
        session_id: Written into each record, as are the next three.
        cwd: Working directory.
        git_branch: Branch at the start.
        agent_id: The subagent whose log it is; empty: the session's own.
        must_exist: True for the log of an earlier session, which may be gone meanwhile.

    Raises:
        SessionError: Another process holds the session, or the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        session_id: str,
        cwd: Path,
        git_branch: str = "",
        agent_id: str = "",
        must_exist: bool = False,
    ) -> None:
        self.path = path
        self.git_branch = git_branch
        self._base = {
            "sessionId": session_id,
            "cwd": str(cwd),
            "gitBranch": git_branch,
            "version": __version__,
            "formatVersion": FORMAT_VERSION,
            **viewer_fields(agent_id),
        }
        self._waiting: deque[bytes] = deque()
        try:
            make_private_folder(path.parent)
            self._fd = open_private_file(path, os.O_RDWR | os.O_APPEND | (0 if must_exist else os.O_CREAT))
        except ConfigError as error:
            raise SessionError(f"{error}; the variable PANPAN_HOME can name another place for sessions") from error
        except OSError as error:
            raise SessionError(f"cannot open the session log {path}: {error.strerror}") from error
        try:
            self.is_locked = self._lock()
            """True if the file system has locks, so that no other panpan writes into it."""
            self._is_torn = ends_in_mid_line(self._fd)
            self._newest_ns = 0 if agent_id else _newest_in_future(path)
        except BaseException:
            os.close(self._fd)
            raise
        self.parent_uuid: str | None = None
        """The record that the next one follows."""
        self._listeners: list[Callable[[Mapping[str, Any]], None]] = []

    @property
    def is_new(self) -> bool:
        """True if nothing was ever written into it."""
        return os.fstat(self._fd).st_size == 0

    def listen(self, listener: Callable[[Mapping[str, Any]], None]) -> None:
        """Tell a listener each record, whole, before it is written."""
        self._listeners.append(listener)

    def go_on_after(self, uuid: str | None) -> None:
        """Let the next record follow this one, or with None no other."""
        self.parent_uuid = uuid

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record that follows the one before; if it cannot be, it is written before the next one.

        Raises:
            SessionLogError: It could not be written yet.
        """
        whole = {"parentUuid": self.parent_uuid, **self._base, "timestamp": timestamp(), **record}
        self.parent_uuid = record["uuid"]
        self._waiting.append(encode_record(whole))
        for listener in self._listeners:
            listener(whole)
        self.flush()

    def flush(self) -> None:
        """Write what could not be written before, or raise SessionLogError."""
        while self._waiting:
            self._write(self._waiting[0])
            self._waiting.popleft()

    def sync(self) -> None:
        """Make what was written durable; blocks for some milliseconds.

        Raises:
            SessionLogError: The disk reports an error, or the file was deleted.
        """
        try:
            self._stay_newest()
            os.fsync(self._fd)
            is_deleted = os.fstat(self._fd).st_nlink == 0
        except OSError as error:
            raise SessionLogError(f"the session log {self.path} may not be on disk: {error.strerror}") from error
        if is_deleted:
            raise SessionLogError(
                f"another program has deleted or replaced the session log {self.path}; "
                "save this conversation with /export, then begin a new session with /clear"
            )

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
            self._stay_newest()
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
            self._is_torn = self._is_torn if written else ends_in_mid_line(self._fd)
            raise SessionLogError(
                f"the session log {self.path} cannot be written: {error.strerror}; "
                "panpan keeps the new messages in memory and tries again"
            ) from error
        self._is_torn = False

    def _stay_newest(self) -> None:
        """Be newer than the logs that were written before the clock was set back, as what is newest goes by times."""
        if self._newest_ns:
            with suppress(OSError, OverflowError):
                os.utime(self._fd, ns=(self._newest_ns, self._newest_ns))

    def _lock(self) -> bool:
        """Keep others from writing into the file; return whether its file system has locks."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = describe_lock_owner(lock_holder(self._fd))
            session_id = self._base["sessionId"]
            raise SessionHeldError(
                f"the session {session_id} is open in another panpan{owner}; "
                "close it there, or join it with panpan attach if it is on a terminal",
                session_id,
            ) from None
        except OSError:
            return False  # appended records are whole even so
        if not self._is_at_its_place():
            raise SessionVanishedError(f"the session {self._base['sessionId']} was just deleted or archived")
        return True

    def _is_at_its_place(self) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False


class NullLog(SessionLog):
    """A log that is no file, for a session that is never held, as where its tools are only listed."""

    def __init__(self, cwd: Path) -> None:
        self.path = cwd / "unkept.jsonl"
        self.git_branch = ""
        self.parent_uuid = None
        self.is_locked = True

    def listen(self, listener: Callable[[Mapping[str, Any]], None]) -> None:
        pass

    def append(self, record: Mapping[str, Any]) -> None:
        pass

    def flush(self) -> None:
        pass

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


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
        only: True for a line that is wanted; the others are not parsed.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with open_to_read(path) as file:
            for number, (line, _) in enumerate(lines_of(file), 1):
                if not only(line):
                    continue
                record = parse_line(line)
                if record is not None and isinstance(record.get("uuid"), str):
                    yield record
                elif line.strip() and line.endswith(b"\n"):
                    note_damage(number)
    except OSError as error:
        raise SessionError(f"cannot read the session log {path}: {error.strerror}") from error


def _newest_in_future(path: Path) -> int:
    """Return a time after that of every other log beside this one, where one has a time to come; 0 if none has."""
    try:
        others = [entry for entry in os.scandir(path.parent) if entry.name.endswith(".jsonl")]
        times = [other.stat(follow_symlinks=False).st_mtime_ns for other in others if other.name != path.name]
    except OSError:
        return 0
    newest = max(times, default=0)
    return newest + 1_000 if newest > time.time_ns() else 0


def ends_in_mid_line(fd: int) -> bool:
    """Return True if the last line of a log has no end, as a crash leaves it."""
    size = os.fstat(fd).st_size
    return size > 0 and os.pread(fd, 1, size - 1) != b"\n"
