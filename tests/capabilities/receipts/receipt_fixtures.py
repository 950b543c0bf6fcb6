"""Sessions whose commands leave receipts."""

import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from panpan.capabilities.receipts.session_receipts import SessionReceipt, SessionReceipts
from panpan.session.session import Session
from panpan.types.events import Event
from tests.capabilities.plan_mode.test_plan_sessions import Place


def place_in(folder: Path) -> Place:
    """Make a workspace and a home in a folder."""
    (folder / "workspace").mkdir()
    return Place(folder, {"HOME": str(folder), "PANPAN_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"})


def call(tool: str, **arguments: object) -> str:
    """Return a reply of the scripted model with one call."""
    written = ", ".join(f"{name} = {json.dumps(value)}" for name, value in arguments.items())
    return f'tool_use = [{{ name = "{tool}", input = {{ {written} }} }}]'


def bash(command: str, **arguments: object) -> str:
    """Return a reply of the scripted model that runs a command."""
    return call("Bash", command=command, **arguments)


async def receipts_of(session: Session) -> list[SessionReceipt]:
    """Return the receipts once all are there."""
    await session[SessionReceipts].settled()
    return list(session[SessionReceipts].receipts)


async def submit(session: Session, on_event: Callable[[Event], object] = lambda _: None) -> None:
    """Run a turn to its end."""
    async with aclosing(session.submit("go")) as events:
        async for event in events:
            on_event(event)
