"""Commands for the terminals that joined a session: the session that the query names, else the one used last."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from panpan.faces.server.opencode.asked import Asked, Body, Offered
from panpan.faces.server.opencode.ids import own_id
from panpan.hub.events import TerminalCommand
from panpan.hub.hub import Hub
from panpan.hub.operations.table import NotFoundError
from panpan.hub.wire import WireError


async def _ask(asked: Asked, command: TerminalCommand, text: str = "") -> bool:
    await asked.on(_meant(asked), "terminal.run", command=command, text=text)
    return True


def _meant(asked: Asked) -> Hub:
    """Return the session that the query names, or the one used last."""
    if not (named := asked.params.get("session")):
        return asked.newest()
    hub = asked.sessions.hubs.get(own_id("ses", str(named)))
    if hub is None or not asked.may_read(hub.session.info.id):
        raise NotFoundError("this session is not open")
    return hub


async def _submit(asked: Asked) -> bool:
    """Send the text in the input box of the joined terminals."""
    return await _ask(asked, "prompt.submit")


async def _clear(asked: Asked) -> bool:
    """Clear the input box of the joined terminals."""
    return await _ask(asked, "prompt.clear")


class TextBody(Body):
    """Text for the input box."""

    text: str = Field(max_length=100_000)


async def _append(asked: Asked) -> bool:
    """Add text to the input box of the joined terminals."""
    return await _ask(asked, "prompt.append", asked.read(TextBody).text)


class CommandBody(Body):
    """A command by its name."""

    command: str


async def _execute(asked: Asked) -> bool:
    """Run `prompt.submit`, `prompt.clear` or `session.interrupt`."""
    name = asked.read(CommandBody).command.replace("_", ".")
    match name:
        case "prompt.submit" | "prompt.clear":
            return await _ask(asked, name)
        case "session.interrupt":
            await asked.on(_meant(asked), "session.cancel")
            return True
        case _:
            raise WireError("the command is prompt.submit, prompt.clear or session.interrupt")


class ToastBody(Body):
    """A short text to show."""

    message: str = Field(max_length=1_000)
    title: str = Field(default="", max_length=200)
    variant: Literal["info", "success", "warning", "error"] = "info"


async def _toast(asked: Asked) -> bool:
    """Show a hint in the joined terminals."""
    body = asked.read(ToastBody)
    return await _ask(asked, "hint.show", ": ".join(filter(None, (body.title, body.message))))


TERMINAL_CALLS: Sequence[Offered] = (
    Offered("POST", "/tui/submit-prompt", _submit, "tui.submitPrompt"),
    Offered("POST", "/tui/append-prompt", _append, "tui.appendPrompt"),
    Offered("POST", "/tui/clear-prompt", _clear, "tui.clearPrompt"),
    Offered("POST", "/tui/execute-command", _execute, "tui.executeCommand"),
    Offered("POST", "/tui/show-toast", _toast, "tui.showToast"),
)
