"""Commands that switch, rename, fork, rewind, export or end the session."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event

from anyio import to_thread

from panpan.config.locations import Locations
from panpan.errors import PanpanError
from panpan.faces.terminal.commands.session_keys import session_redactor
from panpan.session.capability import FileHistory
from panpan.session.command import Command, Leave, OpenSession, Option, Terminal, number_options, say
from panpan.session.log.recorder import fork
from panpan.session.stored.finding import named_session
from panpan.session.stored.store import SessionSummary, newest_first, summary_of
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import UserMessage
from panpan.version import __version__

BOTH, CONVERSATION, FILES = "conversation and files", "conversation alone", "files alone"


async def _rewind(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    prompts = [message for message in session.conversation.messages if isinstance(message, UserMessage)][::-1]
    if not prompts:
        say(terminal, "nothing has been said in this session yet")
        return
    picked = await terminal.choose("Rewind to before which message?", [Option(_line(prompt)) for prompt in prompts])
    if picked is None:
        return
    prompt = prompts[picked]
    files = session.find(FileHistory)
    what = CONVERSATION if files is None else await _what(terminal)
    if what is None or (files is not None and "files" in what and not await files.go_back(terminal, prompt.uuid)):
        return
    if "conversation" in what:
        await session.rewind(prompt.uuid)
        further = f" and {picked} further" if picked else ""
        say(terminal, f"taken back: “{_line(prompt)}”{further}; the log keeps it", "dim")
        terminal.prefill_input(prompt.typed)


async def _what(terminal: Terminal) -> str | None:
    choices = (BOTH, CONVERSATION, FILES)
    picked = await terminal.choose("What goes back?", number_options([Option(choice) for choice in choices]))
    return None if picked is None else choices[picked]


def _line(prompt: UserMessage) -> str:
    return next(filter(None, map(clean_line, prompt.typed.splitlines())), "(no text)")


async def _fork(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    if not session.conversation.messages:
        say(terminal, "nothing has been said in this session yet; it is as good as a new one")
        return
    folder = Locations.find(session.info.cwd, terminal.env).sessions_folder
    copy = await to_thread.run_sync(fork, session.log_path, folder)
    said = f"going on in a copy; the way back: /resume, or panpan -r {session.info.id}"
    terminal.leave(OpenSession(copy.stem, keeps_choices=True, message=said))


async def _export(terminal: Terminal, wanted: str) -> None:
    from panpan.session.export.export import export_session
    from panpan.session.export.transcript import Transcript, subagent_transcripts

    session = terminal.session
    if not session.conversation.messages:
        say(terminal, "nothing has been said in this session yet, so there is nothing to export")
        return
    info = session.info
    transcript = Transcript(
        session_id=info.id,
        title=session.title or "",
        model=info.model,
        cwd=str(info.cwd),
        panpan_version=__version__,
        exported_at=datetime.now().astimezone(),
        messages=tuple(session.conversation.messages),
        compactions=tuple(session.conversation.compactions),
        git_branch=session.git_branch,
        subagents=await to_thread.run_sync(partial(subagent_transcripts, session.log_path, panpan_version=__version__)),
    )
    path = await export_session(transcript, session_redactor(terminal), folder=info.cwd, wanted=_unquoted(wanted))
    say(terminal, f"written to {clean_line(str(path))}; only you can read it, and keys were removed", "good")


def _unquoted(path: str) -> str:
    """Return a path without the quotes that a shell needs around blanks."""
    return path[1:-1] if len(path) > 1 and path[0] == path[-1] and path[0] in "'\"" else path


MOST_SESSIONS = 50
"""Most sessions in the list, without runs with -p. Older ones are found by their words or id."""

MOST_FOUND = 20
"""Most sessions found by a search in conversations."""

_PATIENCE_S = 2.0
"""Seconds to wait for another panpan that uses the index."""

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


async def chosen_session(terminal: Terminal, places: Locations) -> str | None:
    """Return the id of the session that the user picks; None if they pick none."""
    choice = _Choice(places, terminal.session.info.id)
    await to_thread.run_sync(choice.fill)
    if not choice.sessions:
        say(terminal, "there is no other session of this project; `panpan sessions --all` lists those of all projects")
        return None
    options = [_option(session) for session in choice.sessions]
    picked = await terminal.choose("Resume which session?", options, search=choice.that_say)
    return None if picked is None else choice.sessions[picked].id


class _Choice:
    """Sessions that can be picked: the listed ones, followed by those found by a search."""

    def __init__(self, places: Locations, this_id: str) -> None:
        self.sessions: list[SessionSummary] = []
        self._places = places
        self._this_id = this_id

    def fill(self) -> None:
        """List the newest sessions, and runs with -p only if there are no others; blocks."""
        runs: list[SessionSummary] = []
        for path in self._paths():
            if (summary := summary_of(path)) is None:
                continue
            (self.sessions if summary.is_interactive else runs).append(summary)
            if len(self.sessions) == MOST_SESSIONS:
                break
        self.sessions = self.sessions or runs[:MOST_SESSIONS]

    async def that_say(self, text: str) -> Mapping[int, Option]:
        """Return the sessions that contain `text`, by their index among all; implements `OptionSearch`."""
        over = Event()
        try:
            hits = await to_thread.run_sync(partial(self._hits, text, over), abandon_on_cancel=True)
        finally:
            over.set()  # stops the thread, since nobody waits for it
        return {self._place_of(session): _option(session, excerpt) for session, excerpt in hits}

    def _hits(self, text: str, over: Event) -> Sequence[tuple[SessionSummary, str]]:
        from panpan.session.stored.search import excerpt_of, search_sessions

        try:
            found = search_sessions(
                self._places.search_index,
                self._paths(),
                text,
                most=MOST_FOUND,
                keep_going=lambda: not over.is_set(),
                patience_s=_PATIENCE_S,
            )
        except PanpanError:  # the list works without the search
            return ()
        summaries = ((summary_of(one.path), excerpt_of(one.record, text)) for one in found)
        return [(summary, excerpt) for summary, excerpt in summaries if summary is not None]

    def _place_of(self, session: SessionSummary) -> int:
        paths = [one.path for one in self.sessions]
        if session.path in paths:
            return paths.index(session.path)
        self.sessions.append(session)
        return len(paths)

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
    """Return an age in words, such as "3 min ago"."""
    for unit, length in _UNITS:
        if (number := int(seconds // length)) >= 1:
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"


async def _clear(terminal: Terminal, rest: str) -> None:
    if not terminal.session.conversation.messages:
        say(terminal, "nothing has been said in this session yet; it is as good as a new one")
        return
    resume_hint = f"/resume, or panpan -r {terminal.session.info.id}"
    terminal.leave(OpenSession(message=f"a new session begins; the way back: {resume_hint}"))


async def _resume(terminal: Terminal, wanted: str) -> None:
    places = Locations.find(terminal.session.info.cwd, terminal.env)
    session_id = await (_named(terminal, places, wanted) if wanted else chosen_session(terminal, places))
    if session_id == terminal.session.info.id:
        say(terminal, "that is this session")
    elif session_id is not None:
        terminal.leave(OpenSession(session_id))


async def _named(terminal: Terminal, places: Locations, wanted: str) -> str:
    this_id = terminal.session.info.id
    named = await to_thread.run_sync(partial(named_session, places, wanted, but=this_id))
    if named.note:
        say(terminal, named.note, "dim")
    return named.log.stem


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
    Command("clear", "Begin a new session; this one can be resumed", _clear, needs_terminal=True),
    Command(
        "resume",
        "Go on with an earlier session",
        _resume,
        arguments="[id, title or text]",
        has_picker=True,
        needs_terminal=True,
    ),
    Command("rewind", "Go back to before an earlier message", _rewind, has_picker=True),
    Command("fork", "Continue in a copy of this session", _fork, needs_terminal=True),
    Command(
        "export",
        "Write this session to a file: .md, .html, .json or .jsonl",
        _export,
        arguments="[file]",
        is_immediate=True,
    ),
    Command("rename", "Give this session a title", _rename, arguments="[title]", is_immediate=True),
    Command("exit", "Leave panpan", _exit, aliases=("quit", "q"), is_immediate=True, needs_terminal=True),
)
