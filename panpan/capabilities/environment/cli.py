"""`panpan env`: Show why a Python environment is broken.

Nothing of the environment is run.
"""

import os
from pathlib import Path

import click

from panpan.capabilities.environment.env_doctor import diagnose
from panpan.capabilities.environment.layers import (
    EnvReport,
    constraint_rows,
    heading,
    layer_rows,
    unread_lines,
    verdict_lines,
)
from panpan.cli_kit.commands import CommandGroup
from panpan.errors import ConfigError
from panpan.python_environments.find_environment import find_environment, project_of
from panpan.python_environments.machine_root import MachineRoot

_COLOURS = {"holds": "green", "risk": "yellow", "unknown": None, "broken": "red"}


@click.group("env", cls=CommandGroup)
def env() -> None:
    """Look at Python environments."""


@env.command("doctor")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all findings.")
def doctor(path: Path | None, as_json: bool) -> int:
    """Show which layer of an environment is broken, and what to do: packages, binaries, CUDA, driver, hardware.

    PATH is an environment or a project folder. Without PATH, checks the environment of this folder, or else the active
    one, also against the project's requirements. Only reads files, and runs nothing. Exits with 1 if a layer is broken.
    """
    report = _report(path)
    if as_json:
        click.echo(report.model_dump_json(indent=2))
    else:
        _print(report)
    return 0 if report.first_broken is None else 1


def _report(path: Path | None) -> EnvReport:
    place = (path or Path()).resolve()
    if not place.is_dir():
        raise ConfigError(f"{path} is not a folder; name an environment or a project folder")
    root = MachineRoot()
    named_by = {} if path else os.environ
    environment = find_environment(root, str(place), named_by)
    return diagnose(root, environment, os.environ, project_of(str(place), environment, _here()))


def _here() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # deleted meanwhile
        return ""


def _print(report: EnvReport) -> None:
    click.echo(heading(report))
    for rows in (layer_rows(report), constraint_rows(report)):
        click.echo()
        for row in rows:
            click.echo(f"{click.style(f'{row.state:8}', fg=_COLOURS[row.state])} {row.text}")
    for line in unread_lines(report):
        click.echo(line)
    click.echo()
    for number, line in enumerate(verdict_lines(report)):
        click.secho(line, bold=number == 0)
