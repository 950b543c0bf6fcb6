"""`panpan` on a terminal: the REPL, and how it opens sessions."""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from panpan.cli.failures import say
from panpan.cli.options import Options
from panpan.config.known_secrets import secrets_of_run
from panpan.config.locations import Locations
from panpan.services.sessions.session import Session
from panpan.system.redact import Redactor
from panpan.ui.line_asker import YesOrNo
from panpan.ui.line_reader import LineReader
from panpan.ui.repl.asking import Asking
from panpan.ui.repl.run import ReplSetup, run_repl
from panpan.ui.stdin import StdinReader
from panpan.ui.stdout import StdoutWriter

HISTORY_FILE = "history"


async def run_repl_for(
    options: Options, out: StdoutWriter, open_with: Callable[..., AbstractAsyncContextManager[Session]]
) -> int:
    """Run the REPL and return the exit code.

    Args:
        options: What the command line says.
        out: Standard output.
        open_with: Opens a session for options.

    Raises:
        PanpanError: The session could not be opened.
    """
    places = _places(options)
    yes_or_no = YesOrNo(out, LineReader(StdinReader(sys.stdin)))

    def opening(asking: Asking, changed: dict[str, Any]) -> AbstractAsyncContextManager[Session]:
        return open_with(
            {**options, **changed},
            ask=asking.permission,
            ask_user=asking.user,
            ask_yes_or_no=yes_or_no,
            warn=asking.tell,
        )

    setup = ReplSetup(
        open_first=lambda asking: opening(asking, {}),
        open_other=lambda asking, session_id: opening(asking, {"continues": False, "resume": session_id}),
        env=os.environ,
        history_file=places.project_folder / HISTORY_FILE,
        redactor=Redactor(secrets_of_run(places, os.environ)),
        rule_place=places.shown(places.local_settings),
        warn=say,
        first_prompt=options["first_prompt"],
    )
    return await run_repl(setup)


def _places(options: Options) -> Locations:
    return Locations.find(Path(options["cwd"] or ".").expanduser().absolute(), os.environ)
