"""`panpan attach`: a second terminal for a session that is open in another panpan."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from panpan.cli.run_command import FIRST_SIGN, enter_kept
from panpan.cli_kit.commands import chosen_folder
from panpan.config.locations import Locations
from panpan.config.ui_look import read_ui_look
from panpan.errors import ConfigError
from panpan.session.stored.finding import find_session, session_line
from panpan.session.stored.store import logs_of_all_projects, summary_of
from panpan.system.processes.private_socket import connect_privately

if TYPE_CHECKING:
    from panpan.faces.terminal.attached import AttachedSession
    from panpan.faces.terminal.terminal_state import TerminalState


@click.command("attach")
@click.argument("session", required=False)
@click.pass_context
def command(ctx: click.Context, session: str | None) -> int:
    """Join SESSION, which is open in another panpan: its id, title, or words said in it.

    Both terminals show the same turns and questions, and either may answer. Without SESSION, join the only open one.
    """
    folder = chosen_folder(ctx, None).expanduser().absolute()
    places = Locations.find(folder, os.environ)
    if session is None:
        session_id = _only_open(places)
    else:
        session_id = find_session(places.home, places.sessions_folder, session).stem
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("panpan attach needs a terminal; to read a session elsewhere, use panpan sessions export")
    look = read_ui_look(folder, os.environ, plain=False, given={})
    with enter_kept():
        sys.stdout.write(FIRST_SIGN)
        sys.stdout.flush()
        from panpan.faces.terminal.run import ReplSetup, run_repl

        setup = ReplSetup(os.environ, look, lambda state: _attached(state, places, session_id), None)
        return anyio.run(run_repl, setup)


def _attached(state: "TerminalState", places: Locations, session_id: str) -> "AttachedSession":
    from panpan.config.known_secrets import secrets_of_run
    from panpan.faces.terminal.attached import AttachedSession
    from panpan.system.text.redact import Redactor

    state.history.write_with(Redactor(secrets_of_run(places, os.environ)).redact)
    return AttachedSession(state, places.sockets_folder, session_id)


def _only_open(places: Locations) -> str:
    """Return the id of the only session that can be joined.

    Raises:
        ConfigError: There is none, or there are several, which are named.
    """
    ids = open_sessions(places.sockets_folder)
    if not ids:
        raise ConfigError("no session is open in another panpan; begin one with panpan")
    if len(ids) == 1:
        return ids[0]
    logs = [path for path in logs_of_all_projects(places.home) if path.stem in ids]
    summaries = [one for path in logs if (one := summary_of(path)) is not None and one.cwd]
    lines = {one.id: session_line(one, has_folder=True) for one in summaries}
    told = [lines.get(one, f"{one}  nothing was said yet") for one in ids]
    raise ConfigError("\n    ".join(["several sessions are open; name one by its id:", *told]))


def open_sessions(sockets: Path) -> Sequence[str]:
    """Return the ids of the sessions that can be joined, and remove the sockets of processes that were killed."""
    found = []
    for path in sorted(sockets.glob("*.sock")):
        try:
            connect_privately(path).close()
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except (OSError, ConfigError):
            continue
        else:
            found.append(path.stem)
    return found
