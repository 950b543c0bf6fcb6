"""`panpan sessions doctor`: what is wrong with sessions, and copies in which it is mended."""

import json
from pathlib import Path

import click

from panpan.cli.doctor_checks import how_to_remove
from panpan.cli.sessions.common import ALL, CWD, JSON, folders_of, locations_of, log_of, logs_of
from panpan.errors import ConfigError, SessionLogError
from panpan.session.log.log_writer import left_unfinished
from panpan.session.log.repair import Finding, examined, mended_copies, set_modes
from panpan.system.text.terminal_text import printable


@click.command("doctor")
@click.argument("session", required=False)
@ALL
@click.option(
    "--repair", "repairs", is_flag=True, help="Set modes right, and write mended copies; the logs stay as they are."
)
@JSON
@CWD
@click.pass_context
def command(
    ctx: click.Context, session: str | None, is_all: bool, repairs: bool, as_json: bool, cwd: Path | None
) -> int:
    """Say what is wrong with SESSION, or with each of this project, and end with 1 where something is.

    Damage does not keep a session from going on: what cannot be read is passed over.
    """
    from panpan.app import BUILTIN

    locations = locations_of(ctx, cwd)
    logs = [log_of(locations, session)] if session else logs_of(locations, is_all=is_all)
    left = [] if session else left_unfinished(folders_of(locations, is_all=is_all))
    further = [kind for feature in BUILTIN for kind in feature.records]
    found = {log: examined(log, further) for log in logs}
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
        click.echo(f"{len(logs)} looked at, {ill} with something to tell", err=True)
    return 1 if left or any(finding.remedy != "none" for findings in found.values() for finding in findings) else 0


def _repaired(log: Path, findings: list[Finding]) -> list[Path]:
    """Mend a log, and return its copies; what cannot be mended is one more finding, and keeps no other from it."""
    remedies = {finding.remedy for finding in findings}
    try:
        if "mode" in remedies:
            set_modes(log)
        return mended_copies(log, log.parent) if "copy" in remedies else []
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
        click.echo(f"    mended in a copy: panpan -r {printable(copy.stem)}")
    if not copies and any(finding.remedy == "copy" for finding in findings):
        click.echo(f"    panpan sessions doctor {printable(log.stem)} --repair writes a copy without it")


def _as_json(log: Path, findings: list[Finding], copies: list[Path]) -> dict[str, object]:
    return {
        "id": log.stem,
        "path": str(log),
        "findings": [{"kind": one.kind, "text": one.text, "remedy": one.remedy} for one in findings],
        "copies": [copy.stem for copy in copies],
    }
