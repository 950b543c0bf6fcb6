"""Commands about which session this is: another one, a new one, its name, none."""

import time
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from panpan.config.locations import Locations
from panpan.errors import SessionError
from panpan.services.sessions.finding import NoSuchSessionError, find_session, only_session
from panpan.services.sessions.store import newest_first
from panpan.services.sessions.summary import SessionSummary, summary_of
from panpan.system.terminal_text import clean_line
from panpan.ui.repl.canvas import say
from panpan.ui.repl.commands.command import Command, Leave, OpenSession, Option, Terminal

MOST_SESSIONS = 50
"""That are offered; older ones are reached by their id."""

MOST_FOUND = 20
"""Sessions of a search by what was said."""

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


async def _clear(terminal: Terminal, rest: str) -> None:
    if not terminal.session.conversation.messages:
        say(terminal, "nothing has been said in this session yet; it is as good as a new one")
        return
    say(terminal, f"a new session begins; the way back: /resume, or panpan -r {terminal.session.info.id}", "dim")
    terminal.leave(OpenSession())


async def _resume(terminal: Terminal, wanted: str) -> None:
    session_id = await (_named(terminal, wanted) if wanted else _chosen(terminal))
    if session_id == terminal.session.info.id:
        say(terminal, "that is this session")
    elif session_id is not None:
        terminal.leave(OpenSession(session_id))


async def _named(terminal: Terminal, wanted: str) -> str:
    """Return the id of the session that `wanted` means."""
    places = Locations.find(terminal.session.info.cwd, terminal.env)
    try:
        path = await to_thread.run_sync(find_session, places.home, places.sessions_folder, wanted)
    except NoSuchSessionError:
        path = await to_thread.run_sync(_by_what_was_said, places, wanted, terminal.session.info.id)
    return path.stem


def _by_what_was_said(places: Locations, wanted: str, this_id: str) -> Path:
    """Return the log of the only other session of this project in which something was said.

    Raises:
        SessionError: There is none, or there are several.
    """
    from panpan.services.sessions.search.search import search_sessions

    logs = [path for path in newest_first(places.sessions_folder.glob("*.jsonl")) if path.stem != this_id]
    found = search_sessions(places.search_index, logs, wanted, most=MOST_FOUND)
    if not found:
        raise SessionError(f"no session has this id, title or text: {wanted}; `panpan sessions --all` lists them")
    return only_session([one.path for one in found], wanted)


async def _chosen(terminal: Terminal) -> str | None:
    """Return the id of the session that the user picks."""
    folder = Locations.find(terminal.session.info.cwd, terminal.env).sessions_folder
    sessions = await to_thread.run_sync(_earlier_sessions, folder, terminal.session.info.id)
    if not sessions:
        say(terminal, "there is no other session of this project; `panpan sessions --all` lists those of all projects")
        return None
    now = time.time()
    picked = await terminal.choose("Resume which session?", [_option(session, now) for session in sessions])
    return None if picked is None else sessions[picked].id


def _earlier_sessions(folder: Path, this_id: str) -> Sequence[SessionSummary]:
    paths = [path for path in newest_first(folder.glob("*.jsonl")) if path.stem != this_id]
    return [summary for path in paths[:MOST_SESSIONS] if (summary := summary_of(path)) is not None]


def _option(session: SessionSummary, now: float) -> Option:
    more = "" if session.is_counted else "+"
    rounds = f"{session.rounds}{more} {'round' if session.rounds == 1 and session.is_counted else 'rounds'}"
    name = clean_line(session.title) or clean_line(session.prompt) or "(no prompt)"
    return Option(name, f"{age(now - session.written_at)}, {rounds}")


def age(seconds: float) -> str:
    """Return how long ago something was, in words."""
    for unit, length in _UNITS:
        if (number := int(seconds // length)) >= 1:
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"


async def _rename(terminal: Terminal, title: str) -> None:
    if title:
        say(terminal, f"this session is called “{terminal.session.rename(clean_line(title))}” now")
    elif terminal.session.title:
        say(terminal, f"this session is called “{clean_line(terminal.session.title)}”; /rename TITLE changes it")
    else:
        say(terminal, "this session has no title; /rename TITLE gives it one")


async def _exit(terminal: Terminal, rest: str) -> None:
    terminal.leave(Leave())


SESSION_COMMANDS: Sequence[Command] = (
    Command("clear", "Begin a new session; this one can be resumed", _clear),
    Command("resume", "Go on with an earlier session", _resume, arguments="[id, title or text]", offers_choice=True),
    Command("rename", "Give this session a title", _rename, arguments="[title]", is_immediate=True),
    Command("exit", "Leave panpan", _exit, aliases=("quit", "q"), is_immediate=True),
)
