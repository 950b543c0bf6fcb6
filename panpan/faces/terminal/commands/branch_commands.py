"""Commands that leave the straight way of a session: back to an earlier message, or on in a copy."""

from collections.abc import Sequence

from anyio import to_thread

from panpan.capabilities.snapshots.session_snapshots import Snapshots
from panpan.capabilities.snapshots.undo_commands import carry_out, undo_of
from panpan.config.locations import Locations
from panpan.core.command import Command, OpenSession, Option, Terminal, numbered
from panpan.faces.terminal.screen.canvas import say
from panpan.session.forking import fork
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import UserMessage

BOTH, CONVERSATION, FILES = "conversation and files", "conversation alone", "files alone"


async def _rewind(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    prompts = [message for message in session.conversation.messages if isinstance(message, UserMessage)][::-1]
    if not prompts:
        say(terminal, "nothing has been said in this session yet")
        return
    picked = await terminal.choose("Go back to before which message?", [_option(prompt) for prompt in prompts])
    if picked is None:
        return
    prompt = prompts[picked]
    what = await _what(terminal)
    if what is None or ("files" in what and not await _files_went_back(terminal, prompt)):
        return
    if "conversation" in what:
        await session.rewind(prompt.uuid)
        further = f" and {picked} further" if picked else ""
        say(terminal, f"taken back: “{_line(prompt)}”{further}; the log keeps it", "dim")
        terminal.hand_back(prompt.typed)


async def _what(terminal: Terminal) -> str | None:
    """Return what the user wants to have back; None where he wants nothing."""
    if terminal.session.capabilities.find(Snapshots) is None:
        return CONVERSATION
    choices = (BOTH, CONVERSATION, FILES)
    picked = await terminal.choose("What goes back?", numbered([Option(choice) for choice in choices]))
    return None if picked is None else choices[picked]


async def _files_went_back(terminal: Terminal, prompt: UserMessage) -> bool:
    """Bring the files back to what they were before a message; return whether they are so now."""
    undo = undo_of(terminal)
    return await carry_out(terminal, undo, await undo.plan_rewind(prompt.uuid))


def _option(prompt: UserMessage) -> Option:
    return Option(_line(prompt))


def _line(prompt: UserMessage) -> str:
    """Return the first line of what the user typed."""
    lines = [line for line in map(clean_line, prompt.typed.splitlines()) if line]
    return lines[0] if lines else "(no text)"


async def _fork(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    if not session.conversation.messages:
        say(terminal, "nothing has been said in this session yet; it is as good as a new one")
        return
    folder = Locations.find(session.info.cwd, terminal.env).sessions_folder
    copy = await to_thread.run_sync(fork, session.log_path, folder)
    said = f"going on in a copy; the way back: /resume, or panpan -r {session.info.id}"
    terminal.leave(OpenSession(copy.stem, goes_on=True, said=said))


BRANCH_COMMANDS: Sequence[Command] = (
    Command("rewind", "Go back to before an earlier message", _rewind, offers_choice=True),
    Command("fork", "Go on in a copy of this session", _fork, needs_terminal=True),
)
