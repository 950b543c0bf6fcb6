"""Searching sessions: with the index that is kept, made anew where it is damaged, or without one that is kept."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from panpan.errors import ConfigError, SessionError
from panpan.services.sessions.search.index import DamagedIndexError, Found, SearchIndex, query_of
from panpan.system.file_lock import LockUnsupportedError, hold_lock
from panpan.system.private import make_private_folder, open_private_file

MANY_BYTES = 20_000_000
"""Of logs, which take some seconds to be taken in."""

_WAIT_S = 60.0
"""For another panpan that searches; its first search may take long."""


def search_sessions(
    index: Path, logs: Sequence[Path], text: str, *, most: int, say: Callable[[str], None] = lambda _: None
) -> list[Found]:
    """Return the sessions in which one message has every word of `text`, in the order of `logs`; blocks.

    Args:
        index: File of the index; made where it is missing.
        logs: Where to look.
        text: Words, each of which may be the beginning of one; what stands in quotes is looked for in its order.
        most: How many are returned at most.
        say: Told what takes a while.

    Raises:
        ConfigError: There is nothing in `text` to look for.
        SessionError: The system's SQLite cannot search texts.
        LockHeldError: Another panpan uses the index, and does not let go of it.
    """
    query = query_of(text)
    if not query:
        raise ConfigError(f"{text!r} has no letter or digit, and nothing else can be searched for")
    failure: Exception | None = None
    for place in (index, index, None):
        try:
            with _opened(place) as opened:
                if opened.new_bytes(logs) > MANY_BYTES:
                    say("the sessions are being read for the first search, which takes a moment")
                opened.take_in(logs)
                return opened.find(query, logs, most)
        except (sqlite3.Error, DamagedIndexError, OSError, LockUnsupportedError) as error:
            failure = error
            if place is not None and isinstance(error, sqlite3.DatabaseError | DamagedIndexError):
                _remove(place)
    raise SessionError(f"the sessions cannot be searched: {failure}") from failure


@contextmanager
def _opened(place: Path | None) -> Iterator[SearchIndex]:
    """Open the index, which only one process uses at a time; None: one that is nowhere kept."""
    if place is not None:
        make_private_folder(place.parent)
    with hold_lock(_lock_of(place), wait_s=_WAIT_S) if place is not None else nullcontext():
        if place is not None:
            os.close(open_private_file(place, os.O_RDWR | os.O_CREAT))
        with closing(SearchIndex(str(place) if place is not None else ":memory:")) as index:
            yield index


def _lock_of(index: Path) -> Path:
    return index.with_name(f"{index.name}.lock")


def _remove(index: Path) -> None:
    """Take a damaged index away, unless another process is at it."""
    with hold_lock(_lock_of(index), wait_s=_WAIT_S):
        for path in (index, index.with_name(f"{index.name}-journal")):
            path.unlink(missing_ok=True)
