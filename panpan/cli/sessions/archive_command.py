"""`panpan sessions archive`: sessions that no list shall show, and back."""

from pathlib import Path

import click

from panpan.cli.sessions.common import CWD, locations_of
from panpan.errors import SessionError
from panpan.session.stored.finding import find_session
from panpan.session.stored.store import archive, archived_logs, restore
from panpan.system.text.terminal_text import printable


@click.command("archive")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True)
@click.option("--restore", "restores", is_flag=True, help="Bring them back, by their ids.")
@CWD
@click.pass_context
def command(ctx: click.Context, sessions: tuple[str, ...], restores: bool, cwd: Path | None) -> int:
    """Put sessions away: no list, search or -c finds them any more. Nothing is deleted."""
    locations = locations_of(ctx, cwd)
    for wanted in sessions:
        if restores:
            path = restore(_archived(locations.home, wanted))
            click.echo(f"{printable(path.stem)} is back: panpan -r {printable(path.stem)}")
        else:
            path = archive(find_session(locations.home, locations.sessions_folder, wanted))
            click.echo(f"{printable(path.stem)} is archived; panpan sessions archive --restore brings it back")
    return 0


def _archived(home: Path, wanted: str) -> Path:
    """Return the log of a session that was put away.

    Raises:
        SessionError: There is none of that id, or there are several.
    """
    found = sorted(path for path in archived_logs(home) if wanted and path.stem.startswith(wanted))
    found = [path for path in found if path.stem == wanted] or found
    if not found:
        raise SessionError(
            f"there is no archived session {wanted!r}; `panpan sessions list --archived --all` lists them"
        )
    if len(found) > 1:
        raise SessionError(f"several archived sessions begin with {wanted!r}: {', '.join(p.stem for p in found[:5])}")
    return found[0]
