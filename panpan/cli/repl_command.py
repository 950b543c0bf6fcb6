"""`panpan` on a terminal: the REPL.

The rule: only imports for the first screen are here; the rest is imported while the user already types.
"""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from panpan.cli_kit.options import Options
from panpan.config.ui_look import UiLook
from panpan.faces.terminal.run import ReplSetup, run_repl
from panpan.faces.terminal.terminal_state import TerminalState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from panpan.cli_kit.questions import TerminalQuestions
    from panpan.faces.terminal.attached import JoinedIfHeld


async def run_repl_for(options: Options, look: UiLook) -> int:
    """Run the REPL and return the exit code. Raise PanpanError if the session could not be opened."""
    return await run_repl(
        ReplSetup(os.environ, look, lambda state: _sessions_for(options, state), options["first_prompt"])
    )


def _sessions_for(options: Options, state: TerminalState) -> "JoinedIfHeld":
    """Return the sessions for a terminal; none is open yet. One that is open in another panpan is joined.

    Raises:
        ConfigError: There is no such folder, or no panpan home.
    """
    from panpan.cli.shown_sessions import SessionCallbacks, sessions_on
    from panpan.cli_kit.failures import StdoutWriter
    from panpan.cli_kit.questions import TerminalQuestions
    from panpan.cli_kit.stdin import StdinReader
    from panpan.config.known_secrets import secrets_of_run
    from panpan.config.locations import Locations
    from panpan.faces.plain.line_reader import LineReader, YesOrNo
    from panpan.faces.terminal.attached import AttachedSession, JoinedIfHeld
    from panpan.faces.terminal.screen.cursor_screen import CursorScreen
    from panpan.faces.turn_text import WaitingTime
    from panpan.hub.remote import is_shared
    from panpan.system.text.redact import Redactor

    async def ask_yes_or_no(question: str) -> bool | None:
        async with state.app.released():
            return await YesOrNo(StdoutWriter(sys.stdout), LineReader(StdinReader(sys.stdin)))(question)

    @asynccontextmanager
    async def questions() -> "AsyncGenerator[TerminalQuestions, None]":
        async with state.app.released():
            yield TerminalQuestions()

    def not_as_wanted(text: str) -> None:
        """Show a warning, and give texts that were sent to the wanted session back to the user."""
        state.warn(text)
        state.waiting.return_prompt()

    def may_join(session_id: str) -> bool:
        return is_shared(places.sockets_folder, session_id)

    places = Locations.find(Path(options["cwd"] or ".").expanduser().absolute(), os.environ)
    state.history.write_with(Redactor(secrets_of_run(places, os.environ)).redact)
    waiting = WaitingTime(monotonic)
    sessions = sessions_on(
        lambda hub, commands: CursorScreen(hub, state, commands, waiting),
        options,
        waiting,
        SessionCallbacks(os.environ, ask_yes_or_no, questions, state.warn, not_as_wanted, may_join),
    )
    return JoinedIfHeld(sessions, lambda session_id: AttachedSession(state, places.sockets_folder, session_id))
