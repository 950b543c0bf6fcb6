"""`panpan trust`: which projects may run or configure panpan with files of their own.

Every line of a project's files is shown with nothing hidden in it; nothing of the project is run.
"""

import os
from pathlib import Path

import click

from panpan.cli.trust.trust_text import summary, trust_lines
from panpan.cli_kit.chosen_folder import chosen_folder
from panpan.cli_kit.command_group import CommandGroup
from panpan.config.keys import shown
from panpan.config.locations import Locations
from panpan.config.project_files import read_project_files
from panpan.config.trust import ProjectTrust, TrustStore, trust_of, wide_root
from panpan.errors import ConfigError
from panpan.system.files.canonical import canonical_path

_FOLDER = click.argument("folder", type=click.Path(path_type=Path), required=False)


@click.group("trust", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """Show what this project brings along that could run or configure panpan, and whether you trust it."""
    if ctx.invoked_subcommand is None:
        for line in trust_lines(trust_of(_locations(ctx, None))):
            click.echo(line)
    return 0


@command.command("list")
@click.pass_context
def list_trusted(ctx: click.Context) -> int:
    """List the projects that you trust, and which changed since."""
    home = _locations(ctx, None).home
    store = TrustStore(home)
    roots = list(store.trusted_roots())
    for root in roots:
        files = read_project_files(root, home)
        click.echo(f"{shown(root)}: {summary(ProjectTrust(files, store.state(files))) if root.is_dir() else 'is gone'}")
    if not roots:
        click.echo("you have trusted no project", err=True)
    return 0


@command.command("add")
@_FOLDER
@click.option("--whole", is_flag=True, help="Also where it is your home folder, or has that in it.")
@click.pass_context
def add(ctx: click.Context, folder: Path | None, whole: bool) -> int:
    """Trust the project in FOLDER, or here, as its files are now; a change of them is asked about again."""
    locations = _locations(ctx, folder)
    root = locations.project_root
    if (wide := wide_root(root)) and not whole:
        raise ConfigError(
            f"{shown(root)} is {wide}: what is trusted there holds wherever you work in it; add --whole if you mean it"
        )
    files = read_project_files(root, locations.home)
    store = TrustStore(locations.home)
    store.keep(files, is_trusted=True)
    for line in trust_lines(ProjectTrust(files, store.state(files))):
        click.echo(line)
    return 0


@command.command("remove")
@_FOLDER
@click.pass_context
def remove(ctx: click.Context, folder: Path | None) -> int:
    """Trust the project in FOLDER, or here, no longer; also where the folder is gone."""
    is_gone = folder is not None and not folder.exists()
    locations = _locations(ctx, None if is_gone else folder)
    root = canonical_path(folder) if folder is not None and is_gone else locations.project_root
    if not TrustStore(locations.home).remove(root):
        raise ConfigError(f"you have said nothing about {shown(root)}; `panpan trust list` shows what you trust")
    click.echo(f"{shown(root)} is not trusted any more")
    return 0


def _locations(ctx: click.Context, folder: Path | None) -> Locations:
    return Locations.find(chosen_folder(ctx, folder), os.environ)
