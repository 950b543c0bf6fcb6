"""Searching sessions: with the index that is kept, made anew where it is damaged, or without one that is kept."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from panpan.errors import ConfigError, SessionError
from panpan.session.search.index import DamagedIndexError, Found, SearchIndex, query_of
from panpan.session.search.said import said_in
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, open_private_file

MANY_BYTES = 20_000_000
"""Of logs, which take some seconds to be taken in."""

MAX_WORDS = 100
"""Of one search."""

PATIENCE_S = 60.0
"""For another panpan that searches; its first search may take long."""

_SILENT_S = 1.0
"""Before it is said that another one is waited for."""


def search_sessions(
    index: Path,
    logs: Sequence[Path],
    text: str,
    *,
    most: int,
    say: Callable[[str], None] = lambda _: None,
    goes_on: Callable[[], bool] = lambda: True,
    patience_s: float = PATIENCE_S,
) -> list[Found]:
    """Return the sessions in which one message has every word of `text`, in the order of `logs`; blocks.

    Args:
        index: File of the index; made where it is missing.
        logs: Where to look.
        text: Words, each of which may be the beginning of one; what stands in quotes is looked for in its order.
        most: How many are returned at most.
        say: Told what takes a while.
        goes_on: Asked now and then; where it says no, the search ends and has found nothing.
        patience_s: Seconds to wait for another panpan that uses the index; then it is searched without.

    Raises:
        ConfigError: There is nothing in `text` to look for, or too much.
        SessionError: The system's SQLite cannot search texts.
    """
    query = query_of(text)
    if not query:
        raise ConfigError(f"{text!r} has no letter or digit, and nothing else can be searched for")
    if len(text.split()) > MAX_WORDS:
        raise ConfigError(f"a search takes {MAX_WORDS} words at most; search for the rarest of them")
    places: list[Path | None] = [index, index, None]
    failure: Exception | None = None
    while places:
        place = places.pop(0)
        try:
            with _opened(place, patience_s, say) as opened:
                if opened.new_bytes(logs) > MANY_BYTES:
                    say("the sessions are being read for the first search, which takes a moment")
                opened.take_in(logs, goes_on=goes_on)
                return opened.find(query, logs, most) if goes_on() else []
        except (sqlite3.Error, DamagedIndexError) as error:
            failure = error
            if place is not None:
                _remove(place)
        except (OSError, ConfigError, LockHeldError, LockUnsupportedError) as error:
            failure, places = error, places[-1:]  # no index can be kept there, or not now
    raise SessionError(f"the sessions cannot be searched: {failure}") from failure


@contextmanager
def _opened(place: Path | None, patience_s: float, say: Callable[[str], None]) -> Iterator[SearchIndex]:
    """Open the index, which only one process uses at a time; None: one that is nowhere kept."""
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
"""What is shown of a message before the first word that was searched."""
MOST_CHARS = 160


def excerpt_of(record: Mapping[str, Any], wanted: str) -> str:
    """Return what a record says around the first of the wanted words, or its beginning; not cleaned for a terminal."""
    text = " ".join(said_in(record).split())
    words = [word for word in re.findall(r"\w+", wanted) if len(word) > 1] or re.findall(r"\w+", wanted)
    places = [match.start() for word in words if (match := re.search(rf"(?i)(?<!\w){re.escape(word)}", text))]
    begin = max(min(places, default=0) - BEFORE_CHARS, 0)
    cut = text[begin : begin + MOST_CHARS]
    return f"{'…' * (begin > 0)}{cut}{'…' * (begin + MOST_CHARS < len(text))}"
