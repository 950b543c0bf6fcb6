"""`panpan sessions search`: sessions by what was said in them."""

import json
import shutil
from datetime import datetime
from pathlib import Path

import click

from panpan.cli.sessions.common import ALL, ARCHIVED, CWD, JSON, cut, limit, locations_of, logs_of
from panpan.cli.sessions.list_command import as_json_object
from panpan.cli_kit.failures import say
from panpan.session.stored.search import Found, excerpt_of, search_sessions
from panpan.session.stored.summary import SessionSummary, summary_of
from panpan.system.text.terminal_text import printable

_MOST_WANTED_CHARS = 200


@click.command("search")
@click.argument("text", nargs=-1, required=True)
@ALL
@ARCHIVED
@limit("Most sessions that are shown.")
@JSON
@CWD
@click.pass_context
def command(
    ctx: click.Context,
    text: tuple[str, ...],
    is_all: bool,
    is_archived: bool,
    limit: int,
    as_json: bool,
    cwd: Path | None,
) -> int:
    """Find sessions in which one message has every word of TEXT.

    Messages are those of yours and of the model, its calls, the output of tools, and titles. A word of three letters or
    more may be the beginning of a longer one; "in quotes" words follow each other.
    """
    locations = locations_of(ctx, cwd)
    logs = logs_of(locations, is_all=is_all, is_archived=is_archived)
    wanted = " ".join(text)
    found = search_sessions(locations.search_index, logs, wanted, most=limit, say=say)
    hits = [(one, summary) for one in found if (summary := summary_of(one.path)) is not None]
    if as_json:
        click.echo(json.dumps({"sessions": [_as_json(one, summary, wanted) for one, summary in hits]}, indent=2))
        return 0
    for one, summary in hits:
        _show(one, summary, wanted, has_folder=is_all)
    if hits:
        click.echo("to go on with one: panpan -r ID; to read it: panpan sessions show ID", err=True)
    else:
        more = "" if is_all else "; --all looks in those of other projects"
        click.echo(f"no session says {cut(printable(wanted), _MOST_WANTED_CHARS)}{more}", err=True)
    return 0


def _show(found: Found, session: SessionSummary, wanted: str, *, has_folder: bool) -> None:
    when = datetime.fromtimestamp(session.written_at).strftime("%Y-%m-%d %H:%M")
    width = shutil.get_terminal_size().columns
    head = f"{printable(session.id)}  {when}  "
    click.echo(head + cut(printable(session.title or session.prompt) or "(no prompt)", width - len(head)))
    count = "    1 message: " if found.records == 1 else f"    {found.records} messages: "
    click.echo(count + cut(printable(excerpt_of(found.record, wanted)), width - len(count)))
    if has_folder:
        click.echo(f"    {printable(session.cwd) or '(folder not known)'}")


def _as_json(found: Found, session: SessionSummary, wanted: str) -> dict[str, object]:
    excerpt = excerpt_of(found.record, wanted)
    return {**as_json_object(session), "messages": found.records, "excerpt": excerpt, "uuid": found.record.get("uuid")}
