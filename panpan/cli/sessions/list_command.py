"""`panpan sessions list`: which sessions there are to go on with, the one that was used last first."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from panpan.cli.sessions.common import ALL, ARCHIVED, CWD, JSON, cut, limit, locations_of, logs_of
from panpan.config.locations import Locations
from panpan.session.stored.summary import SessionSummary, summary_of
from panpan.system.text.terminal_text import printable

SHORT_ID_CHARS = 13
"""The part of an id that tells the millisecond: `panpan -r` finds the session by it."""


@click.command("list")
@ALL
@ARCHIVED
@click.option("--runs", "has_runs", is_flag=True, help="Runs with -p or a pipe, too.")
@limit()
@JSON
@CWD
@click.pass_context
def command(
    ctx: click.Context, is_all: bool, is_archived: bool, has_runs: bool, limit: int, as_json: bool, cwd: Path | None
) -> int:
    """List the sessions of this project, newest first.

    Sessions that only runs with -p, a pipe or from Python have used are counted, and listed with --runs.
    """
    locations = locations_of(ctx, cwd)
    logs = logs_of(locations, is_all=is_all, is_archived=is_archived)
    sessions, runs, older = _newest(logs, limit, has_runs=has_runs)
    if as_json:
        click.echo(json.dumps({"sessions": [as_json_object(session) for session in sessions]}, indent=2))
        return 0
    for line in lines_of(sessions, has_folders=is_all):
        click.echo(line)
    for hint in _hints(len(sessions), runs, older, locations, is_all=is_all, is_archived=is_archived):
        click.echo(hint, err=True)
    return 0


def _newest(logs: Sequence[Path], limit: int, *, has_runs: bool) -> tuple[Sequence[SessionSummary], int, int]:
    """Return the sessions to list, how many runs were passed over among them, and how many logs are older."""
    sessions: list[SessionSummary] = []
    runs = 0
    for number, path in enumerate(logs):
        if len(sessions) == limit:
            return sessions, runs, len(logs) - number
        if (session := summary_of(path)) is None:
            continue
        if session.is_interactive or has_runs:
            sessions.append(session)
        else:
            runs += 1
    return sessions, runs, 0


def lines_of(sessions: Sequence[SessionSummary], *, has_folders: bool) -> Iterator[str]:
    """Yield a line for each session: id, when, rounds, title or first prompt; and the folder, behind or below it."""
    count_by_beginning = Counter(session.id[:SHORT_ID_CHARS] for session in sessions)
    width = shutil.get_terminal_size().columns
    for session in sessions:
        beginning = session.id[:SHORT_ID_CHARS]
        short = beginning if count_by_beginning[beginning] == 1 else session.id
        when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
        head = f"{printable(short)}  {when}  {_rounds(session):>10}  "
        yield head + cut(printable(session.title or session.prompt) or "(no prompt)", width - len(head))
        if has_folders:
            yield f"    {printable(session.cwd) or '(folder not known)'}"


def _rounds(session: SessionSummary) -> str:
    more = "" if session.is_counted else "+"
    return f"{session.rounds}{more} round" + ("" if session.rounds == 1 and session.is_counted else "s")


def _hints(
    listed: int, runs: int, older: int, locations: Locations, *, is_all: bool, is_archived: bool
) -> Iterator[str]:
    """Yield what to do next; on standard error, so that the list can be piped on."""
    if not listed and not runs:
        where = f"below {printable(str(locations.home))}" if is_all else f"for {printable(str(locations.project_root))}"
        what = "archived sessions" if is_archived else "sessions"
        yield f"there are no {what} {where}" + ("" if is_all else "; --all lists those of other projects")
    if older:
        yield f"… and {older} older; -n N shows more"
    if runs:
        yield f"{'1 run' if runs == 1 else f'{runs} runs'} with -p or a pipe not listed; --runs lists them, too"
    if listed:
        back = "to bring one back: panpan sessions archive --restore ID"
        yield back if is_archived else "to go on with one: panpan -r ID"


def as_json_object(session: SessionSummary) -> dict[str, object]:
    """Return what is told of a session to programs."""
    return {
        "id": session.id,
        "written_at": datetime.fromtimestamp(session.written_at, UTC).isoformat(timespec="seconds"),
        "rounds": session.rounds,
        "is_counted": session.is_counted,
        "is_interactive": session.is_interactive,
        "title": session.title,
        "prompt": session.prompt,
        "cwd": session.cwd,
        "path": str(session.path),
    }
