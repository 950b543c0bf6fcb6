"""`panpan` on a terminal: the REPL.

The rule: only what the first screen needs is imported here; the sessions come while the user already types.
"""

import os

from panpan.cli_kit.options import PICKS_SESSION, Options
from panpan.config.ui_look import UiLook
from panpan.faces.terminal.desk import Desk
from panpan.faces.terminal.run import ReplSetup, SessionsOnDesk, run_repl


async def run_repl_for(options: Options, look: UiLook) -> int:
    """Run the REPL and return the exit code.

    Args:
        options: What the command line says.
        look: How the terminal shall look.

    Raises:
        PanpanError: The session could not be opened.
    """
    first_prompt = options["first_prompt"]
    if options["resume"] == PICKS_SESSION:  # the list is that of the command, over a session that is still empty
        options, first_prompt = {**options, "resume": None}, "/resume"

    def load(desk: Desk) -> SessionsOnDesk:
        from panpan.cli.repl_sessions import sessions_for

        return sessions_for(options, desk)

    return await run_repl(ReplSetup(os.environ, look, load, first_prompt))
