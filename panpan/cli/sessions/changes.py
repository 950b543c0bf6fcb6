"""`panpan sessions export`, `import`, `archive` and `doctor`: commands that write files or move logs."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import click

from panpan.cli.doctor_command import how_to_remove
from panpan.cli.sessions.command import ALL, CWD, JSON, folders_of, locations_of, log_of, logs_of
from panpan.config.known_secrets import secrets_of_run
from panpan.errors import ConfigError, SessionError, SessionLogError
from panpan.session.export.export import SUFFIX_BY_FORMAT, export_session, exported_text
from panpan.session.export.transcript import transcript_of
from panpan.session.importing.claude_transcript import read_transcript
from panpan.session.importing.conversion import convert, write_session
from panpan.session.log.recorder import unfinished_copies
from panpan.session.log.repair import Finding, repaired_copies, set_modes, validate
from panpan.session.stored.finding import find_session
from panpan.session.stored.store import archive, archived_logs, restore
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
    help="Format. If not given, FILE decides: .md, .html, .json, .jsonl for claude, or .atif.json.",
)
@CWD
@click.pass_context
def export_command(ctx: click.Context, session: str, file: str | None, format_: str | None, cwd: Path | None) -> int:
    """Write SESSION to a new FILE, or print it, without keys.

    The formats are markdown, html (one self-contained page), json, claude (a transcript as of Claude Code), and atif (a
    trajectory for evaluation harnesses).
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
    click.echo(f"written to {printable(str(path))}; only you can read it, and keys were removed", err=True)
    return 0


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@CWD
@click.pass_context
def import_command(ctx: click.Context, file: Path, cwd: Path | None) -> int:
    """Import FILE as a session of this project: a transcript of Claude Code (.jsonl), or a JSON export of panpan.

    FILE stays unchanged. It grants no permission, and its settings and prompts are ignored.
    """
    locations = locations_of(ctx, cwd)
    transcript = read_transcript(file)
    found = convert(transcript.records)
    found = replace(found, title=found.title or transcript.title)
    if not found.messages:
        raise SessionError(f"{file} has no conversation that can be read")
    if transcript.damaged_lines:
        found.left_out["lines that are not records"] += transcript.damaged_lines
    path = write_session(found, locations.sessions_folder, source=file.absolute())
    click.echo(
        f"{printable(path.stem)}: {len(found.messages):,} messages; go on with: panpan -r {printable(path.stem)}"
    )
    if found.left_out:
        click.echo(f"left out: {_told(found.left_out)}; they are still in {printable(str(file))}", err=True)
    return 0


def _told(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(left_out.items()))


@click.command("archive")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True)
@click.option("--restore", "restores", is_flag=True, help="Bring sessions back by their ids.")
@CWD
@click.pass_context
def archive_command(ctx: click.Context, sessions: tuple[str, ...], restores: bool, cwd: Path | None) -> int:
    """Archive sessions, so that lists, searches and -c skip them. Nothing is deleted."""
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
    """Return the log of an archived session.

    Raises:
        SessionError: There is no such session, or there are several.
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


@click.command("doctor")
@click.argument("session", required=False)
@ALL
@click.option(
    "--repair", "repairs", is_flag=True, help="Fix file modes and write repaired copies; the logs stay unchanged."
)
@JSON
@CWD
@click.pass_context
def doctor_command(
    ctx: click.Context, session: str | None, is_all: bool, repairs: bool, as_json: bool, cwd: Path | None
) -> int:
    """Show what is wrong with SESSION, or with the sessions of this project; exit with 1 if something is.

    You can continue a damaged session: panpan skips what it cannot read.
    """
    from panpan.app import BUILTIN

    locations = locations_of(ctx, cwd)
    logs = [log_of(locations, session)] if session else logs_of(locations, is_all=is_all)
    left = [] if session else unfinished_copies(folders_of(locations, is_all=is_all))
    further = [kind for feature in BUILTIN for kind in feature.record_types]
    found = {log: validate(log, further) for log in logs}
    copies = {log: _repaired(log, findings) if repairs else [] for log, findings in found.items()}
    if as_json:
        sessions = [_as_json(log, found[log], copies[log]) for log in logs]
        click.echo(json.dumps({"sessions": sessions, "unfinished": [str(path) for path in left]}, indent=2))
    else:
        for log in logs:
            _show(log, found[log], copies[log])
        for path in left:
            click.echo(f"{printable(path.stem)}\n    unfinished: {printable(how_to_remove([path]))}")
        ill = sum(map(bool, found.values()))
        click.echo(f"checked {len(logs)}, {ill} with findings", err=True)
    return 1 if left or any(finding.remedy != "none" for findings in found.values() for finding in findings) else 0


def _repaired(log: Path, findings: list[Finding]) -> list[Path]:
    """Repair a log, and return the copies of it; a failure is added to the findings."""
    remedies = {finding.remedy for finding in findings}
    try:
        if "mode" in remedies:
            set_modes(log)
        return repaired_copies(log, log.parent) if "copy" in remedies else []
    except (ConfigError, SessionLogError) as error:
        findings.append(Finding("not mended", str(error)))
        return []


def _show(log: Path, findings: list[Finding], copies: list[Path]) -> None:
    if not findings:
        return
    click.echo(printable(log.stem))
    for finding in findings:
        click.echo(f"    {printable(finding.kind)}: {printable(finding.text)}")
    for copy in copies:
        click.echo(f"    repaired in a copy: panpan -r {printable(copy.stem)}")
    if not copies and any(finding.remedy == "copy" for finding in findings):
        click.echo(f"    panpan sessions doctor {printable(log.stem)} --repair writes a copy without it")


def _as_json(log: Path, findings: list[Finding], copies: list[Path]) -> dict[str, object]:
    return {
        "id": log.stem,
        "path": str(log),
        "findings": [{"kind": one.kind, "text": one.text, "remedy": one.remedy} for one in findings],
        "copies": [copy.stem for copy in copies],
    }
