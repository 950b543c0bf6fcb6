"""`panpan plugin`: Add, show and enable plug-ins; mcp does so for MCP servers.

Adding fetches and shows; only `enable` lets anything of a plug-in count. Nothing is updated by itself.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from panpan.cli_kit.commands import CommandGroup, chosen_folder, program_of, settings_of_folder
from panpan.config.locations import Locations
from panpan.config.plugins.manifest import PluginError
from panpan.config.plugins.store import (
    Installed,
    LoadedPlugin,
    PluginPlace,
    PluginStore,
    Version,
    changes,
    content_of,
)
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import printable

if TYPE_CHECKING:
    from panpan.capabilities.plugins.description import Description
    from panpan.capabilities.plugins.fetching import Fetcher

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("plugin", cls=CommandGroup)
def plugin() -> None:
    """Add, show, enable and update plug-ins that others wrote.

    A plug-in is a folder of skills, commands, agents, hooks, servers and output styles. It is off until you enable it.
    """


@plugin.command("add")
@click.argument("source")
@click.argument("name", required=False, default="")
@click.option("--path", "folder", default="", metavar="FOLDER", help="Folder of the plug-in in SOURCE.")
@click.pass_context
def add(ctx: click.Context, source: str, name: str, folder: str) -> int:
    """Fetch a plug-in and show what it would run; it stays off.

    SOURCE is a folder, an archive (zip, tar), the address of a git repository, OWNER/NAME on GitHub, or
    npm:NAME[@VERSION]. A repository may be followed by #BRANCH, #TAG or #COMMIT. If SOURCE lists several plug-ins, NAME
    picks one.
    """
    from panpan.capabilities.plugins.adding import fetch_plugin

    wanted = Installed("", source, name, folder)
    store = _store(ctx)
    found = anyio.run(fetch_plugin, wanted, chosen_folder(ctx, None).expanduser().absolute(), _fetcher(ctx))
    added = store.add(Installed(found.plugin.name, found.source, found.entry, folder, found.version), found.files)
    _echo(_described(ctx, _loaded(store, added, added.current), added.current, found.left_out))
    click.echo(f"It is off. To use it: panpan plugin enable {found.plugin.name}")
    return 0


@plugin.command("list")
@_JSON
@click.pass_context
def list_plugins(ctx: click.Context, as_json: bool) -> int:
    """List your plug-ins, and whether each is on."""
    store = _store(ctx)
    installed = store.installed
    if as_json:
        rows = [
            {
                "name": one.name,
                "version": one.current.version,
                "revision": one.current.revision,
                "digest": one.current.digest,
                "source": one.source,
                "enabled": one.is_enabled,
                "broken": _is_broken(store, one),
                "update": one.waiting.version or one.waiting.digest if one.waiting else None,
            }
            for one in installed.values()
        ]
        click.echo(json.dumps({"plugins": rows}, indent=2))
        return 0
    width = max(map(len, installed), default=0)
    for one in installed.values():
        state = "broken" if _is_broken(store, one) else "on" if one.is_enabled else "off"
        update = f", an update waits: panpan plugin show {one.name}" if one.waiting else ""
        click.echo(printable(f"{one.name:<{width}}  {state:<6}  {_label(one.current)}, from {one.source}{update}"))
    if not installed:
        click.echo("there are no plug-ins; panpan plugin add SOURCE adds one", err=True)
    return 0


@plugin.command("show")
@click.argument("name")
@click.pass_context
def show(ctx: click.Context, name: str) -> int:
    """Show what a plug-in brings, what would run, and what an update changes."""
    store = _store(ctx)
    one = _require(store, name)
    loaded = _loaded(store, one, one.current)
    _echo(_described(ctx, loaded, one.current))
    click.echo("  " + printable(f"from {one.source}, added on {one.current.added}, in {loaded.place.root}"))
    if changed := changes(loaded):
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        click.echo("  " + printable(f"not as it was added: {changed[0]}{more}"))
        click.echo(f"It is broken. To repair it: panpan plugin update {one.name}")
    else:
        click.echo(f"It is {'on' if one.is_enabled else f'off. To use it: panpan plugin enable {one.name}'}")
    if one.waiting is not None:
        _show_update(ctx, store, one, loaded, one.waiting)
    return int(bool(changed))


@plugin.command("enable")
@click.argument("name")
@click.pass_context
def enable(ctx: click.Context, name: str) -> int:
    """Let a plug-in count from the next session on, with the update that waits."""
    store = _store(ctx)
    one = _require(store, name)
    version = one.waiting or one.current
    loaded = _loaded(store, one, version)
    if changed := changes(loaded):
        raise ConfigError(f"{printable(changed[0])} is not as it was added; run panpan plugin update {name}")
    _echo(_described(ctx, loaded, version))
    store.enable(one.name, version.digest)
    click.echo(f"It is on, from the next session. To switch it off: panpan plugin disable {one.name}")
    return 0


@plugin.command("disable")
@click.argument("name")
@click.pass_context
def disable(ctx: click.Context, name: str) -> int:
    """Switch a plug-in off, from the next session on."""
    store = _store(ctx)
    store.disable(_require(store, name).name)
    click.echo(f"{name} is off")
    return 0


@plugin.command("remove")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> int:
    """Remove a plug-in; what it has kept as its own data stays."""
    store = _store(ctx)
    one = _require(store, name)
    data = store.place(one.name, one.current).data
    store.remove(one.name)
    with suppress(OSError):
        data.rmdir()  # fails while there is something in it
    kept = f"; its data is still in {printable(str(data))}" if data.exists() else ""
    click.echo(f"{name} is removed{kept}")
    return 0


@plugin.command("update")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_context
def update(ctx: click.Context, names: tuple[str, ...]) -> int:
    """Fetch newer versions of all plug-ins, or of NAME, and show what they change.

    A new version waits until `panpan plugin enable` accepts it; what is on stays on as it is.
    """
    store, fetcher = _store(ctx), _fetcher(ctx)
    failed = 0
    for one in [_require(store, name) for name in names] or list(store.installed.values()):
        try:
            _update(ctx, store, one, fetcher)
        except ConfigError as error:
            failed += 1
            click.echo(f"panpan: {one.name} has no update: {printable(str(error))}", err=True)
    return int(bool(failed))


def _update(ctx: click.Context, store: PluginStore, one: Installed, fetcher: "Fetcher") -> None:
    from panpan.capabilities.plugins.adding import fetch_plugin, require_unmoved

    found = anyio.run(fetch_plugin, one, chosen_folder(ctx, None).expanduser().absolute(), fetcher)
    if found.plugin.name != one.name:
        raise ConfigError(f"the plug-in is now called {found.plugin.name}; add it anew")
    version = store.keep(found.files, one.name, found.version)
    if version.digest == one.current.digest:
        store.offer(one.name, None)
        if _is_broken(store, one):
            store.repair(found.files, one.name, one.current)
            click.echo(f"{one.name} is repaired: {_label(one.current)}")
            return
        click.echo(f"{one.name} is up to date: {_label(one.current)}")
        return
    try:
        anyio.run(require_unmoved, one, found, fetcher)
    except ConfigError:
        store.offer(one.name, None)
        raise
    store.offer(one.name, version)
    _show_update(ctx, store, one, _loaded(store, one, one.current), version)


@plugin.command("validate")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.argument("name", required=False, default="")
@click.pass_context
def validate(ctx: click.Context, folder: Path, name: str) -> int:
    """Check the plug-in in FOLDER, and say what of it would count; exit with 1 if it is wrong.

    If FOLDER lists several plug-ins, NAME picks one.
    """
    from panpan.capabilities.plugins.adding import fetch_plugin

    folder = folder.absolute()
    try:
        found = anyio.run(fetch_plugin, Installed("", str(folder), name), folder, _fetcher(ctx, only_folders=True))
    except ConfigError as error:
        click.echo(printable(str(error)))
        return 1
    place = PluginPlace(found.plugin.name, folder / found.fetched_from.path, folder)
    described = _description(ctx, LoadedPlugin(found.plugin, place, content_of(found.files)))
    _echo(described.lines())
    _echo(f"  wrong: {printable(line)}" for line in found.left_out)
    wrong = len(described.problems) + len(found.left_out)
    notes = {0: "", 1: ", 1 note"}.get(len(described.notes), f", {len(described.notes)} notes")
    click.echo(f"{f'{wrong} wrong' if wrong else 'ok'}{notes}", err=True)
    return int(bool(wrong))


def _store(ctx: click.Context) -> PluginStore:
    folder = chosen_folder(ctx, None).expanduser().absolute()
    return PluginStore(Locations.find(folder, os.environ).home)


def _fetcher(ctx: click.Context, *, only_folders: bool = False) -> "Fetcher":
    from panpan.capabilities.plugins.fetching import Fetcher
    from panpan.system.web.network import WebNetwork
    from panpan.version import __version__

    _, loaded, _ = settings_of_folder(ctx, None)
    web = loaded.settings.web
    network = WebNetwork().as_set_up(web.private_hosts, web.proxy_url)
    return Fetcher(network, web.user_agent or f"panpan/{__version__}", os.environ, only_folders)


def _require(store: PluginStore, name: str) -> Installed:
    found = store.installed.get(name.casefold())
    if found is None:
        names = ", ".join(store.installed) or "none"
        raise ConfigError(f"there is no plug-in {name}; there are {names}")
    return found


def _loaded(store: PluginStore, one: Installed, version: Version) -> LoadedPlugin:
    try:
        return store.load(one.name, version)
    except PluginError as error:
        raise ConfigError(f"the plug-in {one.name} cannot be used: {error}; remove it and add it again") from error


def _is_broken(store: PluginStore, one: Installed) -> bool:
    try:
        return bool(changes(store.load(one.name, one.current)))
    except PluginError:
        return True


def _label(version: Version) -> str:
    revision = version.revision.partition(" ")[0][:12]
    parts = (version.version, revision if revision != version.version else "", f"[{version.digest[:8]}]")
    return " ".join(filter(None, parts))


def _description(ctx: click.Context, loaded: LoadedPlugin) -> "Description":
    from panpan.capabilities.plugins.description import Description

    return Description(loaded, program_of(ctx).parts_of_plugin)


def _described(
    ctx: click.Context, loaded: LoadedPlugin, version: Version, left_out: Iterable[str] = ()
) -> Iterable[str]:
    yield from _description(ctx, loaded).lines()
    yield from (f"  note: {printable(line)}" for line in left_out)
    yield f"  content {version.digest}{f', revision {printable(version.revision)}' if version.revision else ''}"


def _show_update(
    ctx: click.Context, store: PluginStore, one: Installed, loaded: LoadedPlugin, version: Version
) -> None:
    from panpan.capabilities.plugins.description import differences, newly_running, shown

    new = _loaded(store, one, version)
    click.echo(printable(f"An update of {one.name} waits: {_label(one.current)} to {_label(version)}"))
    _echo(differences(loaded.content, new.content))
    for part in newly_running(_description(ctx, loaded), _description(ctx, new)):
        click.echo(f"would run, and did not before: {shown(part.text)}")
    click.echo(f"It does not count until you accept it: panpan plugin enable {one.name}")


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
