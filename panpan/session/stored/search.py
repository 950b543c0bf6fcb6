"""Search in sessions, with an index that is kept and rebuilt if it is damaged, or with one in memory."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from panpan.errors import ConfigError, SessionError
from panpan.session.log.session_log import lines_of, open_to_read, parse_line
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.terminal_text import without_controls
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_CHARS = 20_000
"""Longest text of a record that is indexed; of longer ones, such as large outputs of tools, the beginning is."""


def searchable_text(record: Mapping[str, Any]) -> str:
    """Return what a record says, whatever it holds; empty if that is nothing that people search for."""
    match record:
        case {"type": "summary", "summary": str(title)}:
            return title[:MAX_CHARS]
        case {"type": "user" | "assistant", "message": {"content": content}}:
            return without_controls("\n".join(_texts(content))[:MAX_CHARS])  # colours would become parts of words
        case _:
            return ""


def _texts(content: Any) -> Iterator[str]:
    match content:
        case str():
            yield content
        case [*blocks]:
            for block in blocks:
                yield from _texts_of_block(block)
        case _:
            pass


def _texts_of_block(block: Any) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "tool_result", "content": content}:
            yield from _texts(content)
        case {"type": "tool_use", "name": str(name), "input": dict(arguments)}:
            yield name
            yield from (value for value in arguments.values() if isinstance(value, str))
        case _:
            pass


FORMAT_VERSION = 2
"""Version of the index; one of another version is rebuilt."""

_OFFSET_BITS = 40
"""Bits of an entry's number for the place in its log; the rest is the log's id. That is enough for logs of up to a
terabyte, and 8 million of them."""
_TAIL_BYTES = 200
"""Bytes before the end of the indexed part; their digest is kept, to recognise the log."""
_LOGS_AT_ONCE = 100
"""Logs that are indexed before they are saved, so that an interrupted first search does not begin from nothing."""
_HELD_BYTES = 32_000_000
"""Bytes of new entries in memory before they are written; FTS5's own 1 MB makes the first search four times as long."""
_LEAST_BEGINNING = 3
"""Characters of a word that may be the beginning of a longer one; shorter ones begin too many."""

_SCHEMA = f"""
CREATE TABLE log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER, changed_ns INTEGER, tail BLOB
);
CREATE VIRTUAL TABLE said USING fts5(
    text, content='', columnsize=0, tokenize='unicode61'
);
INSERT INTO said (said, rank) VALUES ('hashsize', {_HELD_BYTES});
PRAGMA user_version = {FORMAT_VERSION};
"""

_WITHOUT_BLANKS = compile_late(r"([\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])")
"""Characters of scripts that put no blanks between words; each counts as a word."""


class DamagedIndexError(Exception):
    """The index disagrees with the logs."""


@dataclass(frozen=True, slots=True)
class Found:
    """One log in which something was found."""

    path: Path
    record: Mapping[str, Any]
    records: int
    """Number of records that match."""


class SearchIndex:
    """An open index in a file, or in `:memory:`; sqlite3.Error if the file cannot be used."""

    def __init__(self, place: str) -> None:
        self._database = sqlite3.connect(place, isolation_level=None)
        try:
            for setting in ("synchronous = OFF", "journal_mode = DELETE", "temp_store = MEMORY", "cache_size = -64000"):
                self._database.execute(f"PRAGMA {setting}")
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._database.executescript(_SCHEMA)
            elif version != FORMAT_VERSION:
                raise sqlite3.DatabaseError(f"the index has version {version}")
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        self._database.close()

    def new_bytes(self, logs: Iterable[Path]) -> int:
        """Return how much of `logs` is still to be taken in, at least."""
        sizes = dict(self._database.execute("SELECT path, size FROM log"))
        return sum(max(_size(path) - sizes.get(_key(path), 0), 0) for path in logs)

    def update(self, logs: Sequence[Path], *, keep_going: Callable[[], bool] = lambda: True) -> None:
        """Take in what is new in `logs`; where `keep_going` says no, the rest is left for the next time."""
        known = {row[1]: row for row in self._database.execute("SELECT id, path, size, changed_ns, tail FROM log")}
        for begin in range(0, len(logs), _LOGS_AT_ONCE):
            self._database.execute("BEGIN IMMEDIATE")
            for path in logs[begin : begin + _LOGS_AT_ONCE]:
                if keep_going():
                    self._take_in_log(path, known.get(_key(path)))
            self._database.execute("COMMIT")

    def find(self, query: str, logs: Sequence[Path], most: int) -> list[Found]:
        """Return `most` logs that have a record with everything that `query` (see `query_of`) says, in their order.

        Raises:
            DamagedIndexError: The index leads to places where nothing is said.
            sqlite3.Error: It cannot be read.
        """
        entries = self._database.execute(
            f"SELECT rowid >> {_OFFSET_BITS}, min(rowid), count(*) FROM said WHERE said MATCH ? GROUP BY 1", (query,)
        )
        places = {log: (first & ((1 << _OFFSET_BITS) - 1), count) for log, first, count in entries}
        ids = dict(self._database.execute("SELECT path, id FROM log"))
        found: list[Found] = []
        for path in logs:
            place = places.get(ids.get(_key(path), 0))
            if place is not None and len(found) < most:
                found.append(Found(path, _record_at(path, place[0]), place[1]))
        return found

    def _take_in_log(self, path: Path, known: tuple[int, str, int, int, bytes] | None) -> None:
        try:
            status = path.stat()
            if known is not None and (known[2], known[3]) == (status.st_size, _changed_ns(status)):
                return
            with open_to_read(path) as file:
                log_id, begin = self._place_to_go_on(file, path, known)
                end = begin
                for offset, line, size in _whole_lines(file, begin):
                    end = offset + size
                    if text := _said_in_line(line):
                        self._database.execute(
                            "INSERT INTO said (rowid, text) VALUES (?, ?)", (log_id << _OFFSET_BITS | offset, text)
                        )
                tail = _digest_before(file, end)
        except OSError:  # deleted meanwhile, or unreadable: then it is not found, either
            return
        self._database.execute(
            "UPDATE log SET size = ?, changed_ns = ?, tail = ? WHERE id = ?", (end, _changed_ns(status), tail, log_id)
        )

    def _place_to_go_on(self, file: Any, path: Path, known: tuple[int, str, int, int, bytes] | None) -> tuple[int, int]:
        """Return the number of a log, and how much of it is taken in already."""
        if known is not None and _digest_before(file, known[2]) == known[4]:
            return known[0], known[2]
        self._database.execute("DELETE FROM log WHERE path = ?", (_key(path),))
        cursor = self._database.execute("INSERT INTO log (path, size) VALUES (?, 0)", (_key(path),))
        assert cursor.lastrowid is not None
        return cursor.lastrowid, 0


def query_of(text: str) -> str:
    """Return the words that a user typed as a query of FTS5, each as a beginning; quoted ones in their order.

    Empty if nothing in it can be searched for.
    """
    encodable = text.encode(errors="replace").decode()  # the typed text may be invalid UTF-8
    parts = [quoted or word for quoted, word in re.findall(r'"([^"]+)"|(\S+)', encodable)]
    spaced = [_WITHOUT_BLANKS.sub(r" \1 ", part).replace('"', " ").replace("\0", " ") for part in parts]
    return " ".join(
        f'"{part}"{" *" if len(part) >= _LEAST_BEGINNING else ""}'
        for part in spaced
        if any(character.isalnum() for character in part)
    )


def _key(path: Path) -> str:
    """Return the form of a path in the database, which takes no bytes that are no text."""
    return str(path).encode(errors="backslashreplace").decode()


def _changed_ns(status: os.stat_result) -> int:
    """Return when a file was changed, as the database takes it: file systems have times that are larger numbers."""
    return status.st_mtime_ns % (1 << 62)


def _said_in_line(line: bytes) -> str:
    record = parse_line(line)
    text = "" if record is None else searchable_text(record)
    if not text.isascii():
        text = _WITHOUT_BLANKS.sub(r" \1 ", text).encode(errors="replace").decode()
    return text


def _record_at(path: Path, offset: int) -> Mapping[str, Any]:
    try:
        with open_to_read(path) as file:
            file.seek(offset)
            record = parse_line(next(lines_of(file), (b"", 0))[0])
    except OSError as error:
        raise DamagedIndexError(f"{path} has no record at {offset}") from error
    if record is None or not searchable_text(record):
        raise DamagedIndexError(f"{path} says nothing at {offset}")
    return record


def _whole_lines(file: BinaryIO, begin: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield lines with their places and sizes; not one without an end, which may still be written."""
    file.seek(begin)
    for line, size in lines_of(file):
        if line.endswith(b"\n"):
            yield begin, line, size
        begin += size


def _digest_before(file: Any, end: int) -> bytes:
    file.seek(max(end - _TAIL_BYTES, 0))
    return blake2b(file.read(min(end, _TAIL_BYTES)), digest_size=16).digest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


MANY_BYTES = 20_000_000
"""Size of new logs from which indexing takes some seconds."""

MAX_WORDS = 100

PATIENCE_S = 60.0
"""Seconds to wait for another panpan that searches; its first search may take long."""

_SILENT_S = 1.0
"""Seconds of waiting before the user is told."""


def search_sessions(
    index: Path,
    logs: Sequence[Path],
    text: str,
    *,
    most: int,
    say: Callable[[str], None] = lambda _: None,
    keep_going: Callable[[], bool] = lambda: True,
    patience_s: float = PATIENCE_S,
) -> list[Found]:
    """Return the sessions in which one message has every word of `text`, in the order of `logs`; blocks.

    Args:
        index: File of the index; made where it is missing.
        logs: Where to look.
        text: Words, each of which may be the beginning of one; words in quotes are searched for in their order.
        most: Number of sessions that are returned at most.
        say: Told what takes a while.
        keep_going: Asked now and then; where it says no, the search ends and has found nothing.
        patience_s: Seconds to wait for another panpan that uses the index; then it is searched without.

    Raises:
        ConfigError: There is nothing in `text` to look for, or too much.
        SessionError: The system's SQLite cannot search texts.
    """
    query = query_of(text)
    if not query:
        raise ConfigError(f"{text!r} has no letter or digit to search for")
    if len(text.split()) > MAX_WORDS:
        raise ConfigError(f"a search takes {MAX_WORDS} words at most; search for the rarest of them")
    places: list[Path | None] = [index, index, None]
    failure: Exception | None = None
    while places:
        place = places.pop(0)
        try:
            with _opened(place, patience_s, say) as opened:
                if opened.new_bytes(logs) > MANY_BYTES:
                    say("reading the sessions for the first search; this takes a moment")
                opened.update(logs, keep_going=keep_going)
                return opened.find(query, logs, most) if keep_going() else []
        except (sqlite3.Error, DamagedIndexError) as error:
            failure = error
            if place is not None:
                _remove(place)
        except (OSError, ConfigError, LockHeldError, LockUnsupportedError) as error:
            failure, places = error, places[-1:]  # no index can be written there, at least not now
    raise SessionError(f"the sessions cannot be searched: {failure}") from failure


@contextmanager
def _opened(place: Path | None, patience_s: float, say: Callable[[str], None]) -> Iterator[SearchIndex]:
    """Open the index, which only one process uses at a time; with no `place`, one in memory."""
    if place is not None:
        make_private_folder(place.parent)
    with _alone(place, patience_s, say) if place is not None else nullcontext():
        if place is not None:
            os.close(open_private_file(place, os.O_RDWR | os.O_CREAT))
        with closing(SearchIndex(str(place) if place is not None else ":memory:")) as index:
            yield index


@contextmanager
def _alone(index: Path, patience_s: float, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the index, and say so where another panpan is waited for."""
    silent_s = min(_SILENT_S, patience_s)
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(_lock_of(index), wait_s=silent_s))
        except LockHeldError:
            if patience_s <= silent_s:
                raise
            say("another panpan is searching; waiting for it")
            stack.enter_context(hold_lock(_lock_of(index), wait_s=patience_s - silent_s))
        yield


def _lock_of(index: Path) -> Path:
    return index.with_name(f"{index.name}.lock")


def _remove(index: Path) -> None:
    """Take a damaged index away, unless another process is at it, or nothing there can be changed."""
    with suppress(OSError, ConfigError, LockHeldError, LockUnsupportedError), hold_lock(_lock_of(index), wait_s=0):
        for path in (index, index.with_name(f"{index.name}-journal")):
            path.unlink(missing_ok=True)


BEFORE_CHARS = 40
"""Characters of a message shown before the first word that was searched."""
MOST_CHARS = 160


def excerpt_of(record: Mapping[str, Any], wanted: str) -> str:
    """Return what a record says around the first of the wanted words, or its beginning; not cleaned for a terminal."""
    text = " ".join(searchable_text(record).split())
    words = [word for word in re.findall(r"\w+", wanted) if len(word) > 1] or re.findall(r"\w+", wanted)
    places = [match.start() for word in words if (match := re.search(rf"(?i)(?<!\w){re.escape(word)}", text))]
    begin = max(min(places, default=0) - BEFORE_CHARS, 0)
    cut = text[begin : begin + MOST_CHARS]
    return f"{'…' * (begin > 0)}{cut}{'…' * (begin + MOST_CHARS < len(text))}"
