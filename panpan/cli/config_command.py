"""`panpan config show`: the settings in force, and the source of each.

The output is TOML, so that lines can be copied into a settings file; keys and tokens are never shown.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr

from panpan.cli.trust_command import summary
from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.cli_kit.options import RUN_OPTIONS, overrides_of
from panpan.config.keys import KeyPath, dotted, flatten, quote_key, shown
from panpan.config.locations import Locations
from panpan.config.settings import MERGED_LISTS
from panpan.config.sources import Loaded, load_settings
from panpan.config.stored_keys import LOGIN
from panpan.errors import ConfigError

_HIDDEN = "********"


@click.group("config", cls=CommandGroup)
def command() -> None:
    """Look at the settings."""


@command.command("show")
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose settings to show.")
@click.pass_context
def show(ctx: click.Context, show_origin: bool, cwd: Path | None) -> None:
    """Print the settings in force, without secrets.

    Options before `config`, as in `panpan --model smart config show`, count as they do in a run.
    """
    locations = Locations.find(chosen_folder(ctx, cwd), os.environ)
    options = ctx.meta.get(RUN_OPTIONS)
    overrides = overrides_of(options) if options else {}
    loaded = load_settings(locations.project_root, os.environ, overrides, locations)
    for line in chosen_model_lines(loaded, locations, os.environ, show_origin=show_origin):
        click.echo(line)
    if show_origin and (loaded.trust.files.content or loaded.trust.files.problems):
        click.echo(f"# {shown(loaded.trust.files.root)} is {summary(loaded.trust)}")
    for line in settings_lines(loaded, show_origin=show_origin):
        click.echo(line)
    for warning in loaded.warnings:
        click.echo(f"panpan: warning: {warning}", err=True)


def chosen_model_lines(
    loaded: Loaded, locations: Locations, env: Mapping[str, str], *, show_origin: bool
) -> Iterator[str]:
    """Yield comments that name the model of these settings and the reason for it, without a request to any provider."""
    from panpan.app import kinds_of
    from panpan.models.factory import resolve_from

    try:
        model = resolve_from(loaded, env, kinds=kinds_of(loaded, locations))
    except ConfigError as error:
        yield f"# panpan has no model to ask: {shown(error)}"
        return
    yield f"# panpan would ask {shown(model.reason)}"
    if show_origin and model.key_place:
        yield f"# its key is {'from' if model.key_place == LOGIN else 'in'} {shown(model.key_place)}"


def settings_lines(loaded: Loaded, *, show_origin: bool) -> Iterator[str]:
    """Yield the settings as lines of TOML, with those without a value as comments and secrets as stars."""
    for path, value in flatten(loaded.settings):
        origin = f"  # {shown(loaded.origins[dotted(path)])}" if show_origin else ""
        if value is None:
            yield f"# {dotted(path)} is not set"
        elif show_origin and path in MERGED_LISTS and value:
            yield from _list_lines(path, value, loaded)
        else:
            yield f"{dotted(path)} = {_toml(value)}{origin}"


def _list_lines(path: KeyPath, items: Sequence[object], loaded: Loaded) -> Iterator[str]:
    yield f"{dotted(path)} = ["
    for number, item in enumerate(items):
        yield f"    {_toml(item)},  # {shown(loaded.origins[f'{dotted(path)}[{number}]'])}"
    yield "]"


def _toml(value: Any) -> str:
    if isinstance(value, SecretStr):
        return quote_key(_HIDDEN)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return quote_key(str(value))
