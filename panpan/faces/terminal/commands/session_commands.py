"""Commands about which session this is: another one, a new one, its name, none."""

from collections.abc import Sequence
from functools import partial

from anyio import to_thread

from panpan.config.locations import Locations
from panpan.core.command import Command, Leave, OpenSession, Terminal
from panpan.faces.terminal.commands.session_choice import chosen_session
from panpan.faces.terminal.screen.canvas import say
from panpan.session.named_session import named_session
from panpan.system.text.terminal_text import clean_line


async def _clear(terminal: Terminal, rest: str) -> None:
    if not terminal.session.conversation.messages:
        say(terminal, "nothing has been said in this session yet; it is as good as a new one")
        return
    way_back = f"/resume, or panpan -r {terminal.session.info.id}"
    terminal.leave(OpenSession(said=f"a new session begins; the way back: {way_back}"))


async def _resume(terminal: Terminal, wanted: str) -> None:
    places = Locations.find(terminal.session.info.cwd, terminal.env)
    session_id = await (_named(terminal, places, wanted) if wanted else chosen_session(terminal, places))
    if session_id == terminal.session.info.id:
        say(terminal, "that is this session")
    elif session_id is not None:
        terminal.leave(OpenSession(session_id))


async def _named(terminal: Terminal, places: Locations, wanted: str) -> str:
    """Return the id of the session that `wanted` means."""
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
        offers_choice=True,
        needs_terminal=True,
    ),
    Command("rename", "Give this session a title", _rename, arguments="[title]", is_immediate=True),
    Command("exit", "Leave panpan", _exit, aliases=("quit", "q"), is_immediate=True, needs_terminal=True),
)
