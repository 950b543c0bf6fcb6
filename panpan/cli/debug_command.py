"""`panpan debug`: what the gate and the URL guard would decide, a JSON object a line in and one out.

The decisions are those of a session: the same code makes them. A row that cannot be read is answered with a denial that
says so, and the next one is read.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import click

from panpan.cli_kit.commands import CommandGroup, gate_of_folder, settings_of_folder
from panpan.errors import PanpanError, ToolError
from panpan.permissions.opening import FolderGate
from panpan.system.web.url_guard import PrivateHosts, guard_url
from panpan.types.permission import is_permission_mode

MAX_ROW_BYTES = 1_000_000
"""Of one line of input; what follows in a longer one is passed over."""

_JSONL = click.option("--jsonl", is_flag=True, required=True, help="Read and write a JSON object a line.")

Row: TypeAlias = Mapping[str, Any]


class _BadRowError(Exception):
    """A row is not what was asked for; says why."""


@click.group("debug", cls=CommandGroup)
def command() -> None:
    """Ask what would be decided; nothing is run and nothing is sent."""


@command.command("permission")
@_JSONL
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder to take for the workspace.")
@click.pass_context
def permission(ctx: click.Context, jsonl: bool, cwd: Path | None) -> int:
    """Decide about tool calls.

    Reads rows of {"mode", "tool", "args"}; writes rows of {"decision": "allow|ask|deny", "reason"} and, in "because",
    what the decision rests on. Without a mode, that of the settings counts.
    """
    from anyio.from_thread import start_blocking_portal

    gate = gate_of_folder(ctx, cwd)
    with start_blocking_portal() as portal:  # so that Ctrl+C reaches the thread that waits for input
        _answer(lambda row: portal.call(_judged, gate, row))
    return 0


@command.command("url")
@_JSONL
@click.pass_context
def url(ctx: click.Context, jsonl: bool) -> int:
    """Decide about web addresses, without asking a name server.

    Reads rows of {"url", "resolves": [ADDRESS, …]}, the addresses to which the host leads; writes rows of {"decision":
    "allow|deny", "reason"} and, where it is allowed, "dial": the addresses that would be dialled.
    """
    from anyio.from_thread import start_blocking_portal

    _, loaded, _ = settings_of_folder(ctx, None)
    private = PrivateHosts.parse(loaded.settings.web.private_hosts)
    with start_blocking_portal() as portal:
        _answer(lambda row: portal.call(_guarded, private, row))
    return 0


async def _judged(gate: FolderGate, row: Row) -> dict[str, Any]:
    mode, tool, arguments = row.get("mode"), row.get("tool"), row.get("args")
    if not isinstance(tool, str):
        raise _BadRowError('"tool" should be the name of a tool')
    if not isinstance(arguments, dict):
        raise _BadRowError('"args" should be an object')
    if mode is not None and not (isinstance(mode, str) and is_permission_mode(mode)):
        raise _BadRowError('"mode" should be the name of a permission mode')
    decision = (await gate.judge(tool, arguments, mode)).decision
    return {
        "decision": type(decision).__name__.lower(),
        "reason": decision.reason.text,
        "because": decision.reason.as_json(),
    }


async def _guarded(private: PrivateHosts, row: Row) -> dict[str, Any]:
    address, resolves = row.get("url"), row.get("resolves", [])
    if not isinstance(address, str):
        raise _BadRowError('"url" should be a text')
    if not isinstance(resolves, list) or not all(isinstance(text, str) for text in resolves):
        raise _BadRowError('"resolves" should be a list of texts')

    async def resolve(host: str, port: int) -> Sequence[str]:
        return resolves

    try:
        guarded = await guard_url(address, resolve, private)
    except ToolError as error:
        return {"decision": "deny", "reason": str(error)}
    return {"decision": "allow", "reason": "all its addresses are public", "dial": guarded.addresses}


def _answer(decide: Callable[[Row], dict[str, Any]]) -> None:
    """Answer each row of standard input with one on standard output, before the next one is read."""
    for number, line in enumerate(_lines(sys.stdin.buffer), 1):
        if line.strip():
            click.echo(json.dumps(_answered(decide, line, number)))
            sys.stdout.flush()


def _answered(decide: Callable[[Row], dict[str, Any]], line: bytes, number: int) -> dict[str, Any]:
    try:
        if len(line) > MAX_ROW_BYTES:
            raise _BadRowError(f"it is longer than {MAX_ROW_BYTES:,} bytes")
        row = json.loads(line)
        if not isinstance(row, dict):
            raise _BadRowError("it is no JSON object")
        return decide(row)
    except _BadRowError as error:
        return _refused(number, str(error))
    except (ValueError, RecursionError):
        return _refused(number, "it is no JSON that panpan can read")
    except PanpanError as error:
        return _refused(number, str(error))
    except Exception as error:  # a bug costs its row, and the caller still gets an answer for each
        return _refused(number, f"panpan failed unexpectedly: {type(error).__name__}: {error}")


def _refused(number: int, why: str) -> dict[str, Any]:
    return {"decision": "deny", "reason": f"row {number}: {why}", "error": True}


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines, of one that is too long only the beginning."""
    while line := stream.readline(MAX_ROW_BYTES + 2):
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(MAX_ROW_BYTES)):
            pass
        yield line
