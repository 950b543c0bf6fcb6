"""The tool `session_search`: earlier sessions of the served folders, and of no others."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from panpan.cli_kit.serving import ServedPlace, ServedTool
from panpan.config.known_secrets import secrets_of_run
from panpan.config.locations import Locations
from panpan.errors import ToolError
from panpan.session.stored.search import Found, excerpt_of, search_sessions
from panpan.session.stored.store import SessionSummary, logs_of_all_projects, newest_first, summary_of
from panpan.system.files.canonical import canonical_path
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_line, printable


class SessionSearchInput(BaseModel):
    """Arguments of `session_search`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(min_length=1, max_length=1_000, description='Words of one message; "in quotes" in their order')
    limit: int = Field(default=10, ge=1, le=50, description="Most sessions to return")


def begun_in(session: SessionSummary, place: ServedPlace) -> bool:
    """Return True if a session was begun in a served folder."""
    try:
        return bool(session.cwd) and place.holds(canonical_path(Path(session.cwd)))
    except (ToolError, OSError, ValueError):  # the folder is gone in an odd way
        return False


def _search(args: SessionSearchInput, place: ServedPlace, keep_going: Callable[[], bool]) -> str:
    locations = Locations.find(place.roots[0], place.env)
    logs = newest_first(logs_of_all_projects(locations.home))
    found = search_sessions(locations.search_index, logs, args.query, most=len(logs), keep_going=keep_going)
    redactor = Redactor(secrets_of_run(locations, place.env, place.overrides))
    lines = []
    for one, session in islice(_served(found, place), args.limit):
        when = datetime.fromtimestamp(session.written_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        lines.append(f"{session.id}  {when}  {printable(session.cwd)}")
        said = (session.title or session.prompt, excerpt_of(one.record, args.query))
        lines += [f"    {clean_line(redactor.redact(text))}" for text in said]
    return "\n".join(lines) or "no session of the served folders says that"


def _served(found: list[Found], place: ServedPlace) -> Iterator[tuple[Found, SessionSummary]]:
    for one in found:
        if (session := summary_of(one.path)) is not None and begun_in(session, place):
            yield one, session


SESSION_SEARCH = ServedTool(
    "session_search",
    "Search in earlier sessions",
    "Find earlier panpan sessions of the served folders with every word of the query in one message, newest first.",
    SessionSearchInput,
    _search,
)
