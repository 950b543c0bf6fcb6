"""`panpan undo`: Undo the changes of the last turn, or redo them.

What would change is shown first, and asked about. A file that the user changed since is joined with what comes back, or
stays as it is; nothing of theirs is overwritten.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import anyio
import click

from panpan.capabilities.snapshots.history import SnapshotJournal
from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.capabilities.snapshots.undo import RestorePlan, diff_lines, done_line, nothing_to_do, plan_lines
from panpan.capabilities.snapshots.workspace import SnapshotPlaces
from panpan.cli_kit.commands import settings_of_folder
from panpan.cli_kit.failures import say
from panpan.config.locations import Locations
from panpan.errors import AnswerNeededError, SnapshotError
from panpan.session.log.fold import fold_records
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.finding import find_session
from panpan.session.stored.store import SessionSummary, newest_session, summary_of
from panpan.system.text.terminal_text import printable

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("undo")
@click.option("--redo", "is_redo", is_flag=True, help="Redo the last undo.")
@click.option(
    "--session",
    "wanted",
    metavar="ID",
    help="Session to undo in; the last used one if not given, runs with -p included.",
)
@click.option("--yes", "auto_approve", is_flag=True, help="Do not ask.")
@click.option("--skip-changed", is_flag=True, help="With --yes: skip files that have changed since.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the session.")
@click.pass_context
def undo(
    ctx: click.Context, is_redo: bool, wanted: str | None, auto_approve: bool, skip_changed: bool, cwd: Path | None
) -> int:
    """Undo the changes of the last turn, after showing them and asking.

    Your own later changes stay: they are merged, or the file is left alone.
    """
    workspace, loaded, locations = settings_of_folder(ctx, cwd)
    roots = (workspace, *(folder.resolve() for folder in loaded.settings.additional_directories if folder.is_dir()))
    with _snapshots(locations, loaded.settings[SnapshotSettings], roots, wanted) as snapshots:
        return anyio.run(_undo, snapshots, is_redo, auto_approve, skip_changed)


async def _undo(snapshots: Snapshots, is_redo: bool, auto_approve: bool, skip_changed: bool) -> int:
    undo = snapshots.undo
    plan = await (undo.plan_redo() if is_redo else undo.plan_undo())
    for line in (*plan_lines(plan), "", *diff_lines(plan)):
        click.echo(click.style(line, fg=_COLOURS.get(line[:1])))
    if (reason := nothing_to_do(plan)) and not (plan.conflicts and skip_changed):
        if not plan.conflicts:
            await undo.restore(plan)
        say(f"{reason}; --skip-changed lets the next one go on from there" if plan.conflicts else reason)
        return 1 if plan.conflicts else 0
    if plan.conflicts and auto_approve and not skip_changed:
        raise SnapshotError(
            "nothing was changed: some of these files have changed since; --skip-changed leaves them out"
        )
    if not auto_approve and not _asked(plan):
        say("nothing was changed")
        return 1
    await undo.restore(plan)
    click.echo(done_line(plan))
    return 0


def _asked(plan: RestorePlan) -> bool:
    if not sys.stdin.isatty():
        raise AnswerNeededError("nothing was changed: there is no terminal to ask on; add --yes")
    rest = " to the others" if plan.conflicts else ""
    return click.confirm(f"Do it{rest}?", default=False)


def _which(session: SessionSummary) -> str:
    """Return a line that identifies the session."""
    when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
    how = "" if session.is_interactive else ", a run with -p or a pipe"
    return f"Session “{printable(session.title or session.prompt)}”, last used {when}{how}: {printable(session.id)}"


@contextmanager
def _snapshots(
    locations: Locations, settings: SnapshotSettings, roots: tuple[Path, ...], wanted: str | None
) -> Iterator[Snapshots]:
    """Open the log of a session that nobody else has open, and give what brings its files back."""
    folder = locations.sessions_folder
    path = find_session(locations.home, folder, wanted) if wanted else newest_session(folder)
    if (session := summary_of(path)) is not None:
        click.echo(_which(session))
        click.echo("" if wanted else "Another one: --session ID\n")
    log = SessionLog(path, session_id=path.stem, cwd=roots[0], must_exist=True)
    try:
        log.go_on_after(fold_records(read_records(path)).last_uuid)
        places = SnapshotPlaces(locations.home, path.stem, lambda: roots)
        yield Snapshots(settings, places, SnapshotJournal(path, log.append), say)
        log.sync()
    finally:
        log.close()
