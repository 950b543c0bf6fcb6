"""The gate of the folder that a subcommand works in, with the options of a run that stand before the subcommand."""

import os
from pathlib import Path

import click

from panpan.cli_kit.chosen_folder import chosen_folder
from panpan.cli_kit.options import RUN_OPTIONS, overrides_of
from panpan.cli_kit.program import program_of
from panpan.config.locations import Locations
from panpan.config.sources import Loaded, load_settings
from panpan.errors import ConfigError
from panpan.permissions.opening import FolderGate


def settings_of_folder(ctx: click.Context, cwd: Path | None) -> tuple[Path, Loaded, Locations]:
    """Return the workspace, its settings, and where panpan's own files are.

    Raises:
        ConfigError: The folder does not exist, or a setting is wrong.
    """
    folder = chosen_folder(ctx, cwd).expanduser()
    workspace = folder.resolve()
    if not workspace.is_dir():
        raise ConfigError(f"the working directory {folder} is not a folder")
    locations = Locations.find(workspace, os.environ)
    options = ctx.meta.get(RUN_OPTIONS)
    loaded = load_settings(workspace, os.environ, overrides_of(options) if options else {}, locations)
    return workspace, loaded, locations


def gate_of_folder(ctx: click.Context, cwd: Path | None) -> FolderGate:
    """Return the gate of the chosen folder.

    Raises:
        ConfigError: The folder, a setting or a rule is wrong.
    """
    workspace, loaded, locations = settings_of_folder(ctx, cwd)
    tools = program_of(ctx).tools_of_folder(workspace, loaded, locations)
    return FolderGate(workspace, loaded, locations, tools)
