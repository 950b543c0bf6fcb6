"""Plug-ins that are on: those that the user has enabled, and folders that the settings or the command line name."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from panpan.config.plugins.manifest import PluginError, read_plugin
from panpan.config.plugins.store import (
    FOLDER,
    LoadedPlugin,
    PluginPlace,
    PluginStore,
    changes,
    content_of,
    read_folder,
)
from panpan.errors import ConfigError


def load_plugins(
    home: Path | None, folders: Sequence[Path], without_mcp: Collection[Path] = ()
) -> tuple[Sequence[LoadedPlugin], Sequence[str]]:
    """Return the plug-ins that are on, and those that cannot be used, each with the reason.

    Args:
        home: The panpan home; None for none.
        folders: Folders of further plug-ins; of one name, they count.
        without_mcp: Those of them whose MCP servers do not count.
    """
    problems: list[str] = []
    found = {one.plugin.name: one for one in _enabled(home, problems)}
    for folder in folders:
        try:
            one = plugin_in(folder, home)
        except PluginError as error:
            problems.append(f"{folder}: {error}")
        else:
            found[one.plugin.name] = _without_mcp(one) if folder in without_mcp else one
    return [found[name] for name in sorted(found)], problems


def _without_mcp(one: LoadedPlugin) -> LoadedPlugin:
    servers = [server for server in one.plugin.servers if server.kind != "mcp"]
    return replace(one, plugin=replace(one.plugin, servers=servers))


def _enabled(home: Path | None, problems: list[str]) -> Iterator[LoadedPlugin]:
    if home is None:
        return
    store = PluginStore(home)
    try:
        installed = store.installed
    except ConfigError as error:
        problems.append(str(error))
        return
    for name, one in installed.items():
        if not one.is_enabled:
            continue
        try:
            loaded = store.load(name, one.current)
            if changed := changes(loaded):
                raise PluginError(f"{changed[0]} is new, missing or changed since you enabled it")
            yield loaded
        except PluginError as error:
            problems.append(f"the plug-in {name} is not used: {error}; to repair it: panpan plugin update {name}")


def plugin_in(folder: Path, home: Path | None) -> LoadedPlugin:
    """Return the plug-in in a folder, as it is now.

    Raises:
        PluginError: It holds none that can be used.
    """
    files, _ = read_folder(folder)
    content = content_of(files)
    plugin = read_plugin(content, folder.name)
    data = (home or folder) / FOLDER / "data" / plugin.name
    return LoadedPlugin(plugin, PluginPlace(plugin.name, folder, data), content)
