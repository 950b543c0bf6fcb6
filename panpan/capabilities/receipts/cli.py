"""Receipts of a session that need not be open, for scripts and for those who check its results.

`panpan receipts`:
"""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import click

from panpan.capabilities.receipts.descriptions import short_receipt
from panpan.capabilities.receipts.kept_receipts import read_kept
from panpan.capabilities.receipts.session_receipts import SessionReceipt
from panpan.cli_kit.commands import settings_of_folder
from panpan.config.known_secrets import secrets_of_run
from panpan.receipts.recorder import CommandRecorder
from panpan.receipts.staleness import Freshness
from panpan.session.stored.finding import find_session
from panpan.session.stored.store import newest_session
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable


@click.command("receipts")
@click.argument("session", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with all files and digests.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the session.")
@click.pass_context
def receipts(ctx: click.Context, session: str | None, as_json: bool, cwd: Path | None) -> int:
    """List the commands that SESSION ran, what came of each, and if that still holds.

    SESSION is its id, title or first words; without it, the newest of this project counts. Commands that only looked
    are left out, but not with --json.
    """
    workspace, _, locations = settings_of_folder(ctx, cwd)
    folder = locations.sessions_folder
    log = find_session(locations.home, folder, session) if session else newest_session(folder)
    found = anyio.run(_judged, log, workspace)
    redactor = Redactor(secrets_of_run(locations, os.environ))
    if as_json:
        rows = [_as_json(one, freshness) for one, freshness in found]
        click.echo(redactor.redact(json.dumps({"session": log.stem, "receipts": rows}, indent=2)))
        return 0
    told = [(one, freshness) for one, freshness in found if one.receipt.kind != "look"]
    now = datetime.now(UTC)
    for one, freshness in told:
        first, *rest = redactor.redact(short_receipt(one, freshness, now)).splitlines()
        click.echo(printable(f"{one.receipt.id}  {first}"))
        for line in rest:
            click.echo(printable(f"          {line}"))
    if not told:
        click.echo("this session has no receipts", err=True)
    return 0


async def _judged(log: Path, workspace: Path) -> Sequence[tuple[SessionReceipt, Freshness]]:
    """Return the receipts in a log, each with its state."""
    judged = []
    with TemporaryDirectory(prefix="panpan-receipts-") as scratch:
        recorders: dict[Path, CommandRecorder] = {}

        async def look(one: SessionReceipt) -> Freshness:
            if one.root not in recorders:
                recorders[one.root] = CommandRecorder((one.root,), Path(scratch) / str(len(recorders)))
            return await recorders[one.root].freshness(one.receipt)

        for record, receipt in read_kept(log, log.stem).receipts:
            root = Path(record.root) if record.root else workspace
            one = SessionReceipt(
                receipt,
                agent_id=record.agent_id,
                turn=record.turn,
                root=root,
                look=look,
                tool_use_id=record.tool_use_id,
                is_of_user=record.is_of_user,
            )
            judged.append((one, await one.freshness()))
    return judged


def _as_json(one: SessionReceipt, freshness: Freshness) -> dict[str, object]:
    return {
        "receipt": one.receipt.model_dump(mode="json"),
        "agent_id": one.agent_id,
        "tool_use_id": one.tool_use_id,
        "turn": one.turn,
        "is_of_user": one.is_of_user,
        "root": str(one.root),
        "state": freshness.state,
        "changed": list(freshness.changed),
    }
