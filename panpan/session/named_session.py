"""The session that a user names to go on with: as `find_session` finds it, else by what was said in it.

The rule: what was said counts only within the project, and only where nothing else fits; what looks like an id is one,
and never a word of a conversation.
"""

import re
from collections.abc import Callable
from pathlib import Path

from panpan.config.locations import Locations
from panpan.errors import ConfigError
from panpan.session.finding import NoSuchSessionError, find_session, only_session
from panpan.session.store import newest_first
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MOST_FOUND = 20
"""Sessions of a search by what was said."""

_ID = re.compile(r"0[0-9a-f]{5,7}|[0-9a-f]{8}-[0-9a-f-]*")


@dataclass(frozen=True, slots=True)
class NamedSession:
    """A session that was found."""

    log: Path
    excerpt: str = ""
    """What was said in it, where that is how it was found; not cleaned for a terminal."""

    @property
    def note(self) -> str:
        """A sentence for the user, who did not name the session by what lists show of it; empty where he did."""
        return f"{self.log.stem} is the session in which this was said: {clean_line(self.excerpt)}" * bool(self.excerpt)


def named_session(
    locations: Locations, wanted: str, *, but: str = "", say: Callable[[str], None] = lambda _: None
) -> NamedSession:
    """Return the session that `wanted` means; blocks.

    Args:
        locations: Those of the project.
        wanted: See `find_session`, or words of one message in a session.
        but: Id of a session that is not looked into.
        say: Told what takes a while.

    Raises:
        SessionError: There is none, or there are several.
    """
    try:
        return NamedSession(find_session(locations.home, locations.sessions_folder, wanted))
    except NoSuchSessionError:
        found = None if _ID.fullmatch(wanted) else _that_says(locations, wanted, but, say)
        if found is None:
            raise
        return found


def _that_says(locations: Locations, wanted: str, but: str, say: Callable[[str], None]) -> NamedSession | None:
    from panpan.session.search.search import excerpt_of, search_sessions

    logs = [log for log in newest_first(locations.sessions_folder.glob("*.jsonl")) if log.stem != but]
    try:
        found = search_sessions(locations.search_index, logs, wanted, most=MOST_FOUND, say=say) if logs else []
    except ConfigError:  # nothing that can be searched for
        return None
    if not found:
        return None
    log = only_session([one.path for one in found], wanted)
    return NamedSession(log, next(excerpt_of(one.record, wanted) for one in found if one.path == log))
