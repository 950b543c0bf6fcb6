"""Sessions on a screen, opened as the command line asks."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from panpan.app import slash_commands
from panpan.cli.session_opening import session_of
from panpan.cli_kit.options import Options
from panpan.faces.session_change import SessionChange
from panpan.faces.terminal.commands.registry import all_commands
from panpan.faces.terminal.dialogs.dialog_askers import DialogAskers
from panpan.faces.terminal.repl import Sessions
from panpan.faces.terminal.screen.screen import Screen
from panpan.session.command import Command, Questions
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


def sessions_on(
    screen_of: Callable[[Session, Sequence[Command]], Screen],
    options: Options,
    asking: DialogAskers,
    around: SessionCallbacks,
) -> Sessions:
    """Return the sessions for a screen; none is open yet.

    Args:
        screen_of: Returns the screen of a session.
        options: Options of the command line.
        asking: Puts the questions of sessions to the user.
        around: Callbacks to the terminal.
    """

    def opening(**changed: Any) -> AbstractAsyncContextManager[Session]:
        return session_of(
            {**options, **changed},
            ask=asking.permission,
            ask_user=asking.user,
            ask_plan=asking.plan,
            ask_yes_or_no=around.ask_yes_or_no,
            questions=around.questions,
            warn=around.warn,
        )

    def opening_other(session_id: str | None) -> AbstractAsyncContextManager[Session]:
        return opening(
            continue_latest=False, resume=session_id, session_id=None, session_name=None, fork=False, record=None
        )

    change = SessionChange(opening_other, around.not_as_wanted)
    return Sessions(screen_of, around.env, asking, all_commands(slash_commands()), opening, change)
