"""Finding the session that a user or a script names: by its id, its title, or what was said in it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TypeAlias
from uuid import NAMESPACE_URL, UUID, uuid5

from panpan.config.locations import Locations
from panpan.errors import ConfigError, SessionError
from panpan.session.stored.store import (
    SessionSummary,
    archived_logs,
    logs_of_all_projects,
    newest_first,
    session_path,
    summary_of,
)
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MOST_NAMED = 5
"""Most matching sessions that the error names."""

LEAST_CHARS_OF_PART = 3
"""Shortest text that may match anywhere in a title or prompt."""

_MOST_TITLE_CHARS = 50


class NoSuchSessionError(SessionError):
    """No session fits what the user wants."""


_Fits: TypeAlias = Callable[[SessionSummary, str], bool]


def find_session(home: Path, folder: Path, wanted: str) -> Path:
    """Return the log of the session that `wanted` means: of this project's `folder`, or of the panpan `home`.

    `wanted` is an id or its beginning, a title, or a part of a title or of the first line that the user said.

    Raises:
        SessionError: There is none, or there are several.
    """
    if not wanted.strip():
        raise SessionError(f"{wanted!r} names no session; `panpan sessions` lists them")
    own, every = list(folder.glob("*.jsonl")), list(logs_of_all_projects(home))
    for paths in (own, every):
        if found := _beginning_with(paths, wanted):
            return only_session(found, wanted)
    for paths in (own, every):
        if named := _named(paths, wanted):
            return _only(named, wanted)
    if archived := _beginning_with(archived_logs(home), wanted):
        raise SessionError(
            f"the session {archived[0].stem} is archived; `panpan sessions archive --restore {archived[0].stem}` "
            "brings it back"
        )
    raise NoSuchSessionError(
        f"there is no session {wanted!r}; list them with `panpan sessions --all`, "
        "or search in them with `panpan sessions search --all WORDS`"
    )


def session_titled(folder: Path, title: str) -> Path | None:
    """Return the log of the session with this title in a folder, or None; raise SessionError if there are several."""
    text = _compared(title)
    summaries = (summary_of(path) for path in newest_first(folder.glob("*.jsonl")))
    found = [summary for summary in summaries if summary is not None and _is_title(summary, text)]
    return _only(found, title) if found else None


def newest_interactive(folder: Path) -> Path:
    """Return the log that was written last of the sessions that were open on a terminal, or raise SessionError."""
    logs = newest_first(folder.glob("*.jsonl"))
    found = next((log for log in logs if (summary := summary_of(log)) is not None and summary.is_interactive), None)
    if found is not None:
        return found
    if logs:
        raise SessionError(
            "this folder has only runs with -p or a pipe, which `panpan sessions --runs` lists; "
            f"resume the newest with panpan -r {logs[0].stem}"
        )
    raise SessionError("there is no session to continue in this folder; start one without -c")


def only_session(logs: Sequence[Path], wanted: str) -> Path:
    """Return the only one of the logs that fit `wanted`; a SessionError names several."""
    readable = [summary for path in logs if (summary := summary_of(path)) is not None]
    return _only(readable, wanted) if readable and len(logs) > 1 else logs[0]


def _beginning_with(paths: Iterable[Path], wanted: str) -> list[Path]:
    """Return the logs of the sessions with this id, or else of those whose id begins with it."""
    found = sorted(path for path in paths if path.stem.startswith(wanted))
    exact = [path for path in found if path.stem == wanted]
    return exact or found


def _named(paths: Iterable[Path], wanted: str) -> Sequence[SessionSummary]:
    """Return the sessions that `wanted` names most exactly, newest first."""
    text = _compared(wanted)
    summaries = [summary for path in newest_first(paths) if (summary := summary_of(path)) is not None]
    ways: Iterator[_Fits] = iter((_is_title, _is_in_title, _is_in_prompt))
    return next((found for fits in ways if (found := [one for one in summaries if fits(one, text)])), [])


def _is_title(session: SessionSummary, text: str) -> bool:
    return _compared(session.title) == text


def _is_in_title(session: SessionSummary, text: str) -> bool:
    return len(text) >= LEAST_CHARS_OF_PART and text in _compared(session.title)


def _is_in_prompt(session: SessionSummary, text: str) -> bool:
    return len(text) >= LEAST_CHARS_OF_PART and text in _compared(session.prompt)


def _only(sessions: Sequence[SessionSummary], wanted: str) -> Path:
    if len(sessions) == 1:
        return sessions[0].path
    ids = {session.id for session in sessions}
    lines = [session_line(session, has_folder=len(ids) < len(sessions)) for session in sessions[:MOST_NAMED]]
    if len(sessions) > MOST_NAMED:
        lines.append(f"and {len(sessions) - MOST_NAMED} more")
    how = "name one by its id" if len(ids) == len(sessions) else "name one by its id, and its folder with --cwd"
    raise SessionError("\n    ".join([f"several sessions fit {wanted!r}; {how}:", *lines]))


def session_line(session: SessionSummary, *, has_folder: bool) -> str:
    """Return the line that names a session among others, cleaned for a terminal."""
    when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
    name = clean_line(session.title or session.prompt)[:_MOST_TITLE_CHARS]
    folder = f"  in {clean_line(session.cwd) or 'a folder that its log does not say'}" if has_folder else ""
    return f"{clean_line(session.id)}  {when}{f'  “{name}”' if name else ''}{folder}"


def _compared(text: str) -> str:
    return " ".join(text.casefold().split())


MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class ChosenSession:
    """A session that may not be there yet."""

    id: str
    log: Path | None = None
    """Its log; None if it has none yet."""
    title: str | None = None
    """Title that it gets when it is begun; None if it was chosen by its id."""


def chosen_session(locations: Locations, wanted: str) -> ChosenSession:
    """Return the session of an id or a name; blocks.

    One name is one session, also where two panpans begin it in the same moment: its id follows from the name, and the
    lock of its log decides. A UUID is the id of a session of any project. Everything else is a name: the one that a
    session of this project was begun under this way, or else its title.

    Raises:
        ConfigError: The name is empty or too long.
        SessionError: Several sessions have that title, or it is archived.
    """
    if (session_id := _id_in(wanted)) is not None:
        found = log_of_id(locations, session_id)
        if found is None and any(log.stem == session_id for log in archived_logs(locations.home)):
            find_session(locations.home, locations.sessions_folder, session_id)  # its error says how to bring it back
        return ChosenSession(session_id, found)
    name = " ".join(wanted.split())
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise ConfigError(f"the name of a session has 1 to {MAX_NAME_CHARS} characters")
    session_id = str(uuid5(NAMESPACE_URL, f"panpan:{locations.project_root}:{name.casefold()}"))
    own = session_path(locations.sessions_folder, session_id)
    if _is_begun(own):
        return ChosenSession(session_id, own)
    if (titled := session_titled(locations.sessions_folder, name)) is not None:
        return ChosenSession(titled.stem, titled)
    return ChosenSession(session_id, title=name)


def log_of_id(locations: Locations, session_id: str) -> Path | None:
    """Return the log of the session with this id, of this project or else of any; None if nothing is in it yet."""
    places = chain(
        [session_path(locations.sessions_folder, session_id)], logs_of_all_projects(locations.home, session_id)
    )
    return next(filter(_is_begun, places), None)


def _id_in(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _is_begun(log: Path) -> bool:
    """Return True if something was written into a log; an empty one belongs to a panpan that has just opened it."""
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


MOST_FOUND = 20

_ID = compile_late(r"0[0-9a-f]{5,7}|[0-9a-f]{8}-[0-9a-f-]*")


@dataclass(frozen=True, slots=True)
class NamedSession:
    """A session that was found."""

    log: Path
    excerpt: str = ""
    """The text by which it was found, if it was found by its messages; not cleaned for a terminal."""

    @property
    def note(self) -> str:
        """Sentence for the user if they named the session by something that lists do not show; else empty."""
        return f"{self.log.stem} is the session in which this was said: {clean_line(self.excerpt)}" * bool(self.excerpt)


def named_session(
    locations: Locations, wanted: str, *, but: str = "", say: Callable[[str], None] = lambda _: None
) -> NamedSession:
    """Return the session that `wanted` means to `find_session`, or else by words of one message in it; blocks.

    Args:
        locations: Those of the project.
        wanted: Its name, or the words.
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
    from panpan.session.stored.search import excerpt_of, search_sessions

    logs = [log for log in newest_first(locations.sessions_folder.glob("*.jsonl")) if log.stem != but]
    try:
        found = search_sessions(locations.search_index, logs, wanted, most=MOST_FOUND, say=say) if logs else []
    except ConfigError:  # no words to search for
        return None
    if not found:
        return None
    log = only_session([one.path for one in found], wanted)
    return NamedSession(log, next(excerpt_of(one.record, wanted) for one in found if one.path == log))
