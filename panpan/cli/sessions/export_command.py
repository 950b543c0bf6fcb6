"""`panpan sessions export`: a session as a file for people or programs, without secrets."""

import os
from functools import partial
from pathlib import Path

import anyio
import click

from panpan.cli.sessions.common import CWD, locations_of, log_of
from panpan.config.known_secrets import secrets_of_run
from panpan.session.export.transcript import transcript_of
from panpan.session.export.write import SUFFIX_BY_FORMAT, export_session, exported_text
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable
from panpan.version import __version__


@click.command("export")
@click.argument("session")
@click.argument("file", required=False)
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(SUFFIX_BY_FORMAT)),
    help="What is written; without it the end of FILE says so: .md, .html, .json, or .jsonl for claude.",
)
@CWD
@click.pass_context
def command(ctx: click.Context, session: str, file: str | None, format_: str | None, cwd: Path | None) -> int:
    """Write SESSION to FILE, which must not exist, or print it; keys, and what looks like one, are taken out.

    The formats are markdown, html (one page that needs nothing else), json, and claude: a transcript as Claude Code
    writes it.
    """
    locations = locations_of(ctx, cwd)
    transcript = transcript_of(log_of(locations, session), panpan_version=__version__)
    redactor = Redactor(secrets_of_run(locations, os.environ))
    suffix = SUFFIX_BY_FORMAT[format_] if format_ else ""
    if file is None:
        text = exported_text(transcript, redactor, suffix or SUFFIX_BY_FORMAT["markdown"])
        click.echo(text.encode(errors="replace"), nl=False)
        return 0
    path = anyio.run(partial(export_session, transcript, redactor, folder=Path.cwd(), wanted=file, suffix=suffix))
    click.echo(f"written to {printable(str(path))}; only you can read it, and keys were taken out", err=True)
    return 0
