"""`panpan` on a terminal: the REPL.

The rule: only what the first screen needs is imported here; the sessions come while the user already types.
"""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panpan.cli_kit.options import PICKS_SESSION, Options
from panpan.config.ui_look import UiLook
from panpan.faces.terminal.run import ReplSetup, run_repl
from panpan.faces.terminal.terminal_state import TerminalState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from panpan.faces.terminal.repl import Sessions
    from panpan.session.session import Session


async def run_repl_for(options: Options, look: UiLook) -> int:
    """Run the REPL and return the exit code. Raise PanpanError if the session could not be opened."""
    first_prompt = options["first_prompt"]
    if options["resume"] == PICKS_SESSION:  # the list is that of the command, over a session that is still empty
        options, first_prompt = {**options, "resume": None}, "/resume"

    return await run_repl(ReplSetup(os.environ, look, lambda state: _sessions_for(options, state), first_prompt))


def _sessions_for(options: Options, state: TerminalState) -> "Sessions":
    """Return what shows the sessions; none is open yet.

    Raises:
        ConfigError: There is no such folder, or no panpan home.
    """
    from panpan.app import slash_commands
    from panpan.cli.session_opening import session_of
    from panpan.cli_kit.failures import StdoutWriter
    from panpan.cli_kit.questions import TerminalQuestions
    from panpan.config.known_secrets import secrets_of_run
    from panpan.config.locations import Locations
    from panpan.faces.plain.line_face import LineReader, YesOrNo
    from panpan.faces.stdin import StdinReader
    from panpan.faces.terminal.commands.registry import all_commands
    from panpan.faces.terminal.dialogs.asking import Asking
    from panpan.faces.terminal.repl import Sessions
    from panpan.system.text.redact import Redactor

    places = Locations.find(Path(options["cwd"] or ".").expanduser().absolute(), os.environ)
    asking = Asking()

    async def ask_yes_or_no(question: str) -> bool | None:
        async with state.screen.handed_over():
            return await YesOrNo(StdoutWriter(sys.stdout), LineReader(StdinReader(sys.stdin)))(question)

    @asynccontextmanager
    async def questions() -> "AsyncGenerator[TerminalQuestions, None]":
        async with state.screen.handed_over():
            yield TerminalQuestions()

    def opening(**changed: Any) -> "AbstractAsyncContextManager[Session]":
        return session_of(
            {**options, **changed},
            ask=asking.permission,
            ask_user=asking.user,
            ask_plan=asking.plan,
            ask_yes_or_no=ask_yes_or_no,
            questions=questions,
            warn=state.warn,
        )

    state.history.write_with(Redactor(secrets_of_run(places, os.environ)).redact)
    return Sessions(
        state,
        asking,
        all_commands(slash_commands()),
        open_first=opening,
        open_other=lambda session_id: opening(
            continues=False, resume=session_id, session_id=None, session_name=None, forks=False, record=None
        ),
    )
