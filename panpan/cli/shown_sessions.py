"""Sessions on a screen, opened as the command line asks."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from panpan.app import slash_commands
from panpan.cli.session_opening import session_of
from panpan.cli_kit.options import Options
from panpan.config.locations import Locations
from panpan.faces.session_change import SessionChange
from panpan.faces.terminal.commands.registry import all_commands
from panpan.faces.terminal.repl import Sessions
from panpan.faces.terminal.screen.screen import Screen
from panpan.faces.turn_text import WaitingTime
from panpan.hub.hub import Hub, hosted
from panpan.hub.sharing import shared
from panpan.session.command import Command, Questions
from panpan.session.frontend import Askers
from panpan.session.session import Session
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SessionCallbacks:
    """Callbacks to the terminal for the time before a session is shown, and between two."""

    env: Mapping[str, str]
    ask_yes_or_no: Callable[[str], Awaitable[bool | None]]
    questions: Callable[[], AbstractAsyncContextManager[Questions]] | None
    """Hands the terminal over to a menu; None if there is no terminal for one."""
    warn: Callable[[str], None]
    """Shows the user a warning."""
    not_as_wanted: Callable[[str], None]
    """Shows that another session is open than the one that was wanted."""
    may_join: Callable[[str], bool] = lambda session_id: False
    """Returns True if the session with an id, which is open in another panpan, can be joined there."""


def sessions_on(
    screen_of: Callable[[Hub, Sequence[Command]], Screen],
    options: Options,
    waiting: WaitingTime,
    around: SessionCallbacks,
) -> Sessions:
    """Return the sessions for a screen; none is open yet.

    Args:
        screen_of: Returns the screen of a session.
        options: Options of the command line.
        waiting: Time spent waiting for the user.
        around: Callbacks to the terminal.
    """

    @asynccontextmanager
    async def opening(**changed: Any) -> AsyncGenerator[Hub, None]:
        def open_with(askers: Askers, warn: Callable[[str], None]) -> AbstractAsyncContextManager[Session]:
            return session_of(
                {**options, **changed},
                ask=askers.permission,
                ask_user=askers.user,
                ask_plan=askers.plan,
                ask_yes_or_no=around.ask_yes_or_no,
                questions=around.questions,
                warn=warn,
            )

        async with hosted(open_with, around.warn) as hub:
            sockets = Locations.find(hub.session.info.cwd, around.env).sockets_folder
            async with shared(hub, sockets, around.warn):
                yield hub

    def opening_other(session_id: str | None) -> AbstractAsyncContextManager[Hub]:
        return opening(
            continue_latest=False, resume=session_id, session_id=None, session_name=None, fork=False, record=None
        )

    change = SessionChange(opening_other, around.not_as_wanted, around.may_join)
    return Sessions(screen_of, around.env, waiting, all_commands(slash_commands()), opening, change)
