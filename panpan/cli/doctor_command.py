"""`panpan doctor`: what is there of all that panpan uses, and what to do about what is not.

It ends with 0 unless something is broken without which panpan cannot work; what is only missing costs a feature.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from panpan.cli.chosen_folder import chosen_folder
from panpan.cli.doctor_checks import (
    Check,
    check_home,
    check_model,
    check_other_keys,
    check_panpan,
    check_proxy,
    check_python,
    check_servers,
    check_settings,
    check_system,
    check_terminal,
)
from panpan.cli.doctor_programs import Programs
from panpan.config.keys import shown
from panpan.config.locations import Locations

_COLOURS = {"ok": "green", "note": "yellow", "missing": "yellow", "broken": "red"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder to look from.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, cwd: Path | None) -> int:
    """Show what panpan finds on this machine."""
    locations = Locations.find(chosen_folder(ctx, cwd), os.environ)
    checks = anyio.run(all_checks, locations, os.environ)
    is_fit = all(check.status != "broken" for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": is_fit, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        for check in checks:
            click.echo(_line(check))
    return 0 if is_fit else 1


async def all_checks(locations: Locations, env: Mapping[str, str]) -> Sequence[Check]:
    """Make every check, those that wait side by side, and return them in the order to read them."""
    settings, loaded = check_settings(locations, env)
    waiting = await _programs_and_servers(Programs(env, locations.project_root))
    return [
        check_panpan(),
        check_python(),
        check_system(),
        check_terminal(env),
        check_home(locations.home),
        *settings,
        *((*check_model(loaded, env), *check_other_keys(loaded, env)) if loaded else ()),
        *check_proxy(env),
        *waiting,
    ]


async def _programs_and_servers(programs: Programs) -> list[Check]:
    found: dict[str, list[Check]] = {}

    async def one(name: str, why: str, *, program: str | None = None, beside: Path | None = None) -> None:
        found[name] = [await programs.check(name, why, program=program, beside=beside)]

    async def sandbox() -> None:
        found["sandbox"] = await programs.check_sandbox()

    async def servers() -> None:
        found["servers"] = await check_servers()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: one("git", "without it there is no branch or change shown to the model"))
        group.start_soon(
            lambda: one(
                "ripgrep",
                "Grep and Glob are slower without it; install ripgrep",
                program="rg",
                beside=Path(sys.executable).parent,
            )
        )
        group.start_soon(lambda: one("bash", "the Bash tool cannot run commands without it"))
        group.start_soon(sandbox)
        group.start_soon(servers)
    order = ("git", "ripgrep", "bash", "sandbox", "servers")
    return [*(check for name in order for check in found[name]), programs.check_browser()]


def _line(check: Check) -> str:
    status = click.style(f"{check.status:8}", fg=_COLOURS[check.status])
    advice = f": {shown(check.advice)}" if check.advice else ""
    return f"{status} {check.name:11} {shown(check.found)}{advice}"
