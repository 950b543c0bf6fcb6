"""Which session a user means: by its id, its title, or what he said first in it.

The rule: what fits several sessions is never guessed; the user is told which they are. The project's own sessions come
before those of others, and the more exact before the less.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from panpan.errors import SessionError
from panpan.session.store import archived_logs, logs_of_all_projects, newest_first
from panpan.session.summary import SessionSummary, summary_of
from panpan.system.text.terminal_text import clean_line

MOST_NAMED = 5
"""Of the sessions that fit, in the error that names them."""

LEAST_CHARS_OF_PART = 3
"""Of a text that may stand anywhere in a title or prompt."""

_MOST_TITLE_CHARS = 50


class NoSuchSessionError(SessionError):
    """No session fits what the user wants."""


_Fits: TypeAlias = Callable[[SessionSummary, str], bool]


def find_session(home: Path, folder: Path, wanted: str) -> Path:
    """Return the log of the session that `wanted` means.

    Args:
        home: The panpan home.
        folder: This project's session folder.
        wanted: An id or its beginning, a title, or a part of a title or of the first line that the user said.

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
        f"there is no session {wanted!r}; `panpan sessions --all` lists them, "
        "`panpan sessions search --all` looks in what was said in all projects"
    )


def session_titled(folder: Path, title: str) -> Path | None:
    """Return the log of the session in a project's session folder that is called so; None where none is.

    Raises:
        SessionError: There are several.
    """
    text = _compared(title)
    summaries = (summary_of(path) for path in newest_first(folder.glob("*.jsonl")))
    found = [summary for summary in summaries if summary is not None and _is_title(summary, text)]
    return _only(found, title) if found else None


def newest_interactive(folder: Path) -> Path:
    """Return the log that was written last of the sessions that somebody had on a terminal.

    Raises:
        SessionError: There is none.
    """
    logs = newest_first(folder.glob("*.jsonl"))
    found = next((log for log in logs if (summary := summary_of(log)) is not None and summary.is_interactive), None)
    if found is not None:
        return found
    if logs:
        raise SessionError(
            "the only sessions of this folder are runs with -p or a pipe, which `panpan sessions --runs` lists; "
            f"panpan -r {logs[0].stem} goes on with the newest"
        )
    raise SessionError("there is no session to continue in this folder; start one without -c")


def only_session(logs: Sequence[Path], wanted: str) -> Path:
    """Return the only one of `logs`, which are those that fit `wanted`.

    Raises:
        SessionError: There are several; names them.
    """
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
    lines = [_told(session, has_folder=len(ids) < len(sessions)) for session in sessions[:MOST_NAMED]]
    if len(sessions) > MOST_NAMED:
        lines.append(f"and {len(sessions) - MOST_NAMED} more")
    how = "name one by its id" if len(ids) == len(sessions) else "name one by its id, and its folder with --cwd"
    raise SessionError("\n    ".join([f"several sessions fit {wanted!r}; {how}:", *lines]))


def _told(session: SessionSummary, *, has_folder: bool) -> str:
    """Return a session on one line; with its folder where that tells it from others."""
    when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
    name = clean_line(session.title or session.prompt)[:_MOST_TITLE_CHARS]
    folder = f"  in {clean_line(session.cwd) or 'a folder that its log does not say'}" if has_folder else ""
    return f"{clean_line(session.id)}  {when}{f'  “{name}”' if name else ''}{folder}"


def _compared(text: str) -> str:
    return " ".join(text.casefold().split())
