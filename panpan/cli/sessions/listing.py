"""`panpan sessions list`, `search` and `show`: commands that read sessions."""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click

from panpan.cli.sessions.command import ALL, ARCHIVED, CWD, JSON, cut, limit, locations_of, log_of, logs_of
from panpan.cli_kit.failures import StdoutWriter, say
from panpan.config.known_secrets import secrets_of_run
from panpan.config.locations import Locations
from panpan.faces.plain.line_face import LineFace
from panpan.session.export.export import SUFFIX_BY_FORMAT, exported_text
from panpan.session.export.transcript import (
    Transcript,
    compaction_told,
    facts_of,
    title_of,
    transcript_of,
    without_secrets,
)
from panpan.session.stored.search import Found, excerpt_of, search_sessions
from panpan.session.stored.store import SessionSummary, summary_of
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_for_terminal, printable
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Compaction, Message
from panpan.version import __version__

SHORT_ID_CHARS = 13
"""Characters of an id up to its millisecond, by which `panpan -r` finds the session."""


@click.command("list")
@ALL
@ARCHIVED
@click.option("--runs", "has_runs", is_flag=True, help="Include runs with -p or a pipe.")
@limit()
@JSON
@CWD
@click.pass_context
def list_command(
    ctx: click.Context, is_all: bool, is_archived: bool, has_runs: bool, limit: int, as_json: bool, cwd: Path | None
) -> int:
    """List the sessions of this project, newest first.

    Runs with -p, from a pipe or from Python are only counted. --runs lists them, too.
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
    """Return the sessions to list, the number of skipped runs among them, and the number of older logs."""
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
    """Yield a line for each session: id, age, rounds, title or first prompt; and the folder, after or below it."""
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
    """Yield hints on what to do next; for standard error, so that the list can be piped."""
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
    """Return the JSON object of a session."""
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


_MOST_WANTED_CHARS = 200


@click.command("search")
@click.argument("text", nargs=-1, required=True)
@ALL
@ARCHIVED
@limit("Show at most N sessions.")
@JSON
@CWD
@click.pass_context
def search_command(
    ctx: click.Context,
    text: tuple[str, ...],
    is_all: bool,
    is_archived: bool,
    limit: int,
    as_json: bool,
    cwd: Path | None,
) -> int:
    """Find sessions with every word of TEXT in one message.

    Searches your messages, replies, calls, tool results and titles. A word of three letters or more also finds longer
    words that begin with it. Words "in quotes" must follow each other.
    """
    locations = locations_of(ctx, cwd)
    logs = logs_of(locations, is_all=is_all, is_archived=is_archived)
    wanted = " ".join(text)
    found = search_sessions(locations.search_index, logs, wanted, most=limit, say=say)
    hits = [(one, summary) for one in found if (summary := summary_of(one.path)) is not None]
    if as_json:
        click.echo(json.dumps({"sessions": [_found_as_json(one, summary, wanted) for one, summary in hits]}, indent=2))
        return 0
    for one, summary in hits:
        _show_found(one, summary, wanted, has_folder=is_all)
    if hits:
        click.echo("to go on with one: panpan -r ID; to read it: panpan sessions show ID", err=True)
    else:
        more = "" if is_all else "; --all looks in those of other projects"
        click.echo(f"no session says {cut(printable(wanted), _MOST_WANTED_CHARS)}{more}", err=True)
    return 0


def _show_found(found: Found, session: SessionSummary, wanted: str, *, has_folder: bool) -> None:
    when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
    width = shutil.get_terminal_size().columns
    head = f"{printable(session.id)}  {when}  "
    click.echo(head + cut(printable(session.title or session.prompt) or "(no prompt)", width - len(head)))
    count = "    1 message: " if found.records == 1 else f"    {found.records} messages: "
    click.echo(count + cut(printable(excerpt_of(found.record, wanted)), width - len(count)))
    if has_folder:
        click.echo(f"    {printable(session.cwd) or '(folder not known)'}")


def _found_as_json(found: Found, session: SessionSummary, wanted: str) -> dict[str, object]:
    excerpt = excerpt_of(found.record, wanted)
    return {**as_json_object(session), "messages": found.records, "excerpt": excerpt, "uuid": found.record.get("uuid")}


@click.command("show")
@click.argument("session")
@JSON
@CWD
@click.pass_context
def show_command(ctx: click.Context, session: str, as_json: bool, cwd: Path | None) -> int:
    """Print the conversation of SESSION (its id, title or first words), without keys."""
    locations = locations_of(ctx, cwd)
    transcript = transcript_of(log_of(locations, session), panpan_version=__version__)
    redactor = Redactor(secrets_of_run(locations, os.environ))
    if as_json:
        click.echo(exported_text(transcript, redactor, SUFFIX_BY_FORMAT["json"]), nl=False)
        return 0
    anyio.run(_show, without_secrets(transcript, redactor))
    return 0


async def _show(transcript: Transcript) -> None:
    out = StdoutWriter(sys.stdout)
    await out.write(f"{title_of(transcript)}\n")
    for name, text in facts_of(transcript):
        if name != "Exported":
            await out.write(f"{name}: {text}\n")
    await out.write("\n")
    face = LineFace(out, has_colour=out.has_colour(os.environ))
    said: list[Message] = []
    for part in transcript.parts:
        if not isinstance(part, Compaction):
            said.append(_harmless(part))
            continue
        await face.show_all(said)
        said.clear()
        await out.write(f"… {compaction_told(part)[0]}\n")
    await face.show_all(said)


def _harmless(message: Message) -> Message:
    """Return a message without escape sequences, even for a pipe: the output is for reading."""
    if not isinstance(message, AssistantMessage):
        return message  # the face cleans them
    content = [
        block.model_copy(update={"text": clean_for_terminal(block.text)}) if isinstance(block, TextBlock) else block
        for block in message.content
    ]
    return message.model_copy(update={"content": tuple(content)})
