"""Choosing an earlier session from a list, by its title and first words, or by what was said in it."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event

from anyio import to_thread

from panpan.config.locations import Locations
from panpan.core.command import Option, Terminal
from panpan.errors import PanpanError
from panpan.faces.terminal.screen.canvas import say
from panpan.session.store import newest_first
from panpan.session.summary import SessionSummary, summary_of
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MOST_SESSIONS = 50
"""Sessions that are listed, without runs with -p. Older ones are found by their words or by their id."""

MOST_FOUND = 20
"""Sessions of a search by what was said."""

_PATIENCE_S = 2.0
"""For another panpan that uses the index."""

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


async def chosen_session(terminal: Terminal, places: Locations) -> str | None:
    """Return the id of the session that the user picks; None where he picks none.

    Args:
        terminal: Where he picks.
        places: Those of the project.
    """
    choice = _Choice(places, terminal.session.info.id)
    await to_thread.run_sync(choice.fill)
    if not choice.sessions:
        say(terminal, "there is no other session of this project; `panpan sessions --all` lists those of all projects")
        return None
    options = [_option(session) for session in choice.sessions]
    picked = await terminal.choose("Resume which session?", options, search=choice.that_say)
    return None if picked is None else choice.sessions[picked].id


@dataclass(frozen=True, slots=True)
class _Hit:
    """A session in which something was said."""

    session: SessionSummary
    excerpt: str


class _Choice:
    """The sessions that can be picked: those that are listed, and behind them those that were found.

    Args:
        places: Those of the project.
        this_id: Of the session that is open.
    """

    def __init__(self, places: Locations, this_id: str) -> None:
        self.sessions: list[SessionSummary] = []
        self._places = places
        self._this_id = this_id

    def fill(self) -> None:
        """List the newest ones, and runs with -p only where there are no others; blocks."""
        runs: list[SessionSummary] = []
        for path in self._paths():
            if (summary := summary_of(path)) is None:
                continue
            (self.sessions if summary.is_interactive else runs).append(summary)
            if len(self.sessions) == MOST_SESSIONS:
                break
        self.sessions = self.sessions or runs[:MOST_SESSIONS]

    async def that_say(self, text: str) -> Mapping[int, Option]:
        """Return the sessions in which `text` was said, by their place among all; implements `OptionSearch`."""
        over = Event()
        try:
            hits = await to_thread.run_sync(partial(self._hits, text, over), abandon_on_cancel=True)
        finally:
            over.set()  # nobody waits for the thread any more
        return {self._place_of(hit.session): _option(hit.session, hit.excerpt) for hit in hits}

    def _hits(self, text: str, over: Event) -> Sequence[_Hit]:
        from panpan.session.search.excerpt import excerpt_of
        from panpan.session.search.search import search_sessions

        try:
            found = search_sessions(
                self._places.search_index,
                self._paths(),
                text,
                most=MOST_FOUND,
                goes_on=lambda: not over.is_set(),
                patience_s=_PATIENCE_S,
            )
        except PanpanError:  # the list is there all the same
            return ()
        return [
            _Hit(summary, excerpt_of(one.record, text))
            for one in found
            if (summary := summary_of(one.path)) is not None
        ]

    def _place_of(self, session: SessionSummary) -> int:
        known = next((place for place, one in enumerate(self.sessions) if one.path == session.path), None)
        if known is not None:
            return known
        self.sessions.append(session)
        return len(self.sessions) - 1

    def _paths(self) -> Sequence[Path]:
        paths = newest_first(self._places.sessions_folder.glob("*.jsonl"))
        return [path for path in paths if path.stem != self._this_id]


def _option(session: SessionSummary, excerpt: str = "") -> Option:
    more = "" if session.is_counted else "+"
    rounds = f"{session.rounds}{more} {'round' if session.rounds == 1 and session.is_counted else 'rounds'}"
    name = clean_line(session.title) or clean_line(session.prompt) or "(no prompt)"
    said = f": {clean_line(excerpt)}" if excerpt else ""
    return Option(name, f"{age(time.time() - session.written_at)}, {rounds}{said}")


def age(seconds: float) -> str:
    """Return how long ago something was, in words."""
    for unit, length in _UNITS:
        if (number := int(seconds // length)) >= 1:
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"
