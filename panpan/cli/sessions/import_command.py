"""`panpan sessions import`: a transcript of another program, or an export, as a session that can go on."""

from collections.abc import Mapping
from pathlib import Path

import click

from panpan.cli.sessions.common import CWD, locations_of
from panpan.errors import SessionError
from panpan.session.importing.claude_transcript import read_transcript
from panpan.session.importing.conversion import converted, write_session
from panpan.system.text.terminal_text import printable


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@CWD
@click.pass_context
def command(ctx: click.Context, file: Path, cwd: Path | None) -> int:
    """Make a session of this project of FILE: a transcript of Claude Code (.jsonl), or a JSON export of panpan.

    FILE stays as it is. Nothing that it says grants a permission, and none of its settings or prompts are taken over.
    """
    locations = locations_of(ctx, cwd)
    transcript = read_transcript(file)
    found = converted(transcript.records)
    found.title = found.title or transcript.title
    if not found.messages:
        raise SessionError(f"{file} has no conversation that can be read")
    if transcript.damaged_lines:
        found.left_out["lines that are no records"] += transcript.damaged_lines
    path = write_session(found, locations.sessions_folder, source=file.absolute())
    click.echo(
        f"{printable(path.stem)}: {len(found.messages):,} messages; go on with: panpan -r {printable(path.stem)}"
    )
    if found.left_out:
        click.echo(f"left out: {_told(found.left_out)}; they are still in {printable(str(file))}", err=True)
    return 0


def _told(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(left_out.items()))
