"""`panpan sessions`: which sessions there are to go on with, the one that was used last first."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from panpan.cli.chosen_folder import chosen_folder
from panpan.config.locations import Locations
from panpan.services.sessions.store import logs_of_all_projects, newest_first
from panpan.services.sessions.summary import SessionSummary, summary_of
from panpan.system.terminal_text import printable

SHORT_ID_CHARS = 13
"""The part of an id that tells the millisecond: `panpan -r` finds the session by it."""

_LEAST_PROMPT_CHARS = 20
"""Of each prompt, however narrow the terminal."""


@click.command("sessions")
@click.option("--all", "is_all", is_flag=True, help="Those of all projects, with the folder of each.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Most that are shown."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose sessions to list.")
@click.pass_context
def command(ctx: click.Context, is_all: bool, limit: int, as_json: bool, cwd: Path | None) -> int:
    """List the sessions of this project, newest first."""
    locations = Locations.find(chosen_folder(ctx, cwd), os.environ)
    paths = logs_of_all_projects(locations.home) if is_all else locations.sessions_folder.glob("*.jsonl")
    logs = newest_first(paths)
    sessions = [session for path in logs[:limit] if (session := summary_of(path)) is not None]
    if as_json:
        click.echo(json.dumps({"sessions": [_as_json(session) for session in sessions]}, indent=2))
        return 0
    for line in _lines(sessions, has_folders=is_all):
        click.echo(line)
    for hint in _hints(len(logs), len(sessions), locations, is_all=is_all):
        click.echo(hint, err=True)
    return 0


def _lines(sessions: Sequence[SessionSummary], *, has_folders: bool) -> Iterator[str]:
    """Yield a line for each session: id, when, rounds, title or first prompt; and the folder, behind or below it."""
    count_by_beginning = Counter(session.id[:SHORT_ID_CHARS] for session in sessions)
    width = shutil.get_terminal_size().columns
    for session in sessions:
        beginning = session.id[:SHORT_ID_CHARS]
        short = beginning if count_by_beginning[beginning] == 1 else session.id
        when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
        head = f"{printable(short)}  {when}  {_rounds(session):>10}  "
        yield head + _cut(printable(session.title or session.prompt) or "(no prompt)", width - len(head))
        if has_folders:
            yield f"    {printable(session.cwd) or '(folder not known)'}"


def _rounds(session: SessionSummary) -> str:
    more = "" if session.is_counted else "+"
    return f"{session.rounds}{more} round" + ("" if session.rounds == 1 and session.is_counted else "s")


def _cut(text: str, width: int) -> str:
    width = max(width, _LEAST_PROMPT_CHARS)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _hints(there: int, listed: int, locations: Locations, *, is_all: bool) -> Iterator[str]:
    """Yield what to do next; on standard error, so that the list can be piped on."""
    if there == 0:
        where = f"below {printable(str(locations.home))}" if is_all else f"for {printable(str(locations.project_root))}"
        yield f"there are no sessions {where}" + ("" if is_all else "; `panpan sessions --all` lists those of others")
    elif there > listed:
        yield f"… and {there - listed} older; -n N shows more"
    if listed:
        yield "to go on with one: panpan -r ID"


def _as_json(session: SessionSummary) -> dict[str, object]:
    return {
        "id": session.id,
        "written_at": datetime.fromtimestamp(session.written_at, UTC).isoformat(timespec="seconds"),
        "rounds": session.rounds,
        "is_counted": session.is_counted,
        "title": session.title,
        "prompt": session.prompt,
        "cwd": session.cwd,
        "path": str(session.path),
    }
