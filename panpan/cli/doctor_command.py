"""`panpan doctor`: what is there of all that panpan uses, and what to do about what is not.

The last lines say whether panpan can work here. It ends with 1 where it cannot: something is broken, or there is no
model to ask. What is only missing costs a feature.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from panpan.cli.doctor_checks import (
    LOCAL_MODEL,
    MODEL,
    check_home,
    check_limits,
    check_model,
    check_network,
    check_other_keys,
    check_panpan,
    check_program,
    check_python,
    check_sandbox,
    check_servers,
    check_settings,
    check_snapshots,
    check_system,
    check_terminal,
    check_unfinished,
)
from panpan.cli.subcommands import feature_modules
from panpan.cli_kit.commands import chosen_folder
from panpan.cli_kit.doctor import SMALL_MODEL, Check, Machine, Section
from panpan.config.keys import shown
from panpan.config.locations import Locations

_COLOURS = {"ok": "green", "note": "yellow", "optional": None, "missing": "yellow", "broken": "red"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder to look from.")
@click.pass_context
def command(ctx: click.Context, as_json: bool, cwd: Path | None) -> int:
    """Show what panpan finds on this machine."""
    locations = Locations.find(chosen_folder(ctx, cwd), os.environ)
    checks = anyio.run(all_checks, locations, os.environ)
    is_fit, verdict = judged(checks)
    if as_json:
        found = {"ok": is_fit, "verdict": verdict, "checks": [asdict(check) for check in checks]}
        click.echo(json.dumps(found, indent=2))
    else:
        for check in checks:
            click.echo(_line(check))
        click.secho(f"\n{verdict}", bold=True)
    return 0 if is_fit else 1


def judged(checks: Sequence[Check]) -> tuple[bool, str]:
    """Return whether panpan can work here, and what to tell the user of it."""
    broken = list(dict.fromkeys(check.name for check in checks if check.status == "broken"))
    if broken:
        return False, f"panpan cannot work here until this is mended: {', '.join(broken)}"
    models = [check for check in checks if check.name == MODEL and check.status == "ok"]
    if models:
        return True, f"panpan is ready; it asks {shown(models[0].found)}"
    servers = [check for check in checks if check.name == LOCAL_MODEL and check.status == "ok"]
    if any(check.name == SMALL_MODEL and check.status == "ok" for check in checks):
        offer = f"offers what runs here ({shown(servers[0].found)}), else " if servers else ""
        return True, f"panpan is ready; where nothing says which model, it {offer}asks the small local one"
    if servers:
        return True, f"panpan is ready once it is told which model: {shown(servers[0].found)}"
    from panpan.models.local_servers import advice_without_model

    return False, f"panpan cannot work yet: {advice_without_model(())}"


async def all_checks(locations: Locations, env: Mapping[str, str]) -> Sequence[Check]:
    """Make every check, those that wait side by side, and return them in the order to read them."""
    settings, loaded = check_settings(locations, env)
    models, model_kind = check_model(loaded, locations, env) if loaded else ([], "")
    machine = Machine(locations, env, loaded, model_kind)
    features = [module.CHECKS for module in feature_modules("doctor")]

    def of_features(section: Section) -> Iterator[Check]:
        return (check for checks in features if section in checks for check in checks[section](machine))

    return [
        check_panpan(),
        check_python(),
        check_system(),
        check_terminal(env),
        check_home(locations.home),
        check_snapshots(locations),
        *of_features("leavings"),
        *check_unfinished(locations),
        *settings,
        *models,
        *of_features("model"),
        *(check_other_keys(loaded, env) if loaded else ()),
        *of_features("web"),
        *check_network(),
        *await _programs_and_servers(machine),
        *of_features("programs"),
    ]


async def _programs_and_servers(machine: Machine) -> Iterable[Check]:
    beside_python = Path(sys.executable).parent
    without_git = "without it there is no branch or change shown to the model"
    without_ripgrep = "Grep and Glob are slower without it; install ripgrep"
    async with anyio.create_task_group() as group:
        waiting = [
            group.start_soon(check)
            for check in (
                lambda: check_program(machine, "git", without_git),
                lambda: check_program(machine, "ripgrep", without_ripgrep, program="rg", beside=beside_python),
                lambda: check_program(machine, "bash", "the Bash tool cannot run commands without it"),
                lambda: check_sandbox(machine.loaded),
                lambda: check_limits(machine.loaded),
            )
        ]
        servers = group.start_soon(check_servers)
    return [*[task.return_value for task in waiting], *servers.return_value]


def _line(check: Check) -> str:
    status = click.style(f"{check.status:8}", fg=_COLOURS[check.status])
    advice = f": {shown(check.advice)}" if check.advice else ""
    return f"{status} {check.name:11} {shown(check.found)}{advice}"
