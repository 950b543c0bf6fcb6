"""`panpan capabilities list`: built-in features and those of packages and folders, on or off."""

import json
import os
from pathlib import Path

import click

from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.cli_kit.options import RUN_OPTIONS, overrides_of
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.session.external.loading import external_capabilities, is_named
from panpan.system.text.terminal_text import printable


@click.group("capabilities", cls=CommandGroup)
def command() -> None:
    """List the features of panpan, packages and folders."""


@command.command("list")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose settings count.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_context
def list_capabilities(ctx: click.Context, cwd: Path | None, as_json: bool) -> None:
    """List all capabilities with their state and origin.

    Those of packages and folders are off until your settings name them: `capabilities.NAME = true`.
    """
    from panpan.app import BUILTIN

    locations = Locations.find(chosen_folder(ctx, cwd).expanduser().resolve(), os.environ)
    options = ctx.meta.get(RUN_OPTIONS)
    loaded = load_settings(locations.project_root, os.environ, overrides_of(options) if options else {}, locations)
    rows = [(kind.name, True, "panpan") for kind in BUILTIN]
    there = external_capabilities(locations, loaded.trust)
    rows += [(one.name, is_named(one.name, loaded.settings), one.place) for one in there.values()]
    missing = [name for name in loaded.settings.capabilities if is_named(name, loaded.settings) and name not in there]
    rows += [(name, True, "not found") for name in missing]
    width = max(len(name) for name, _, _ in rows)
    for name, is_on, place in rows:
        if as_json:
            click.echo(json.dumps({"name": name, "is_on": is_on, "place": place}))
        else:
            click.echo(f"{printable(name):<{width}}  {'on ' if is_on else 'off'}  {printable(place)}")
