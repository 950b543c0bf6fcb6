"""Fetching one plug-in from its source, be it a plug-in or a catalogue of plug-ins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from panpan.capabilities.plugins.catalogue import catalogue_in, with_manifest
from panpan.capabilities.plugins.fetching import Fetched, Fetcher
from panpan.capabilities.plugins.source import Source, parse_source, source_of_entry
from panpan.config.plugins.manifest import MANIFESTS, Plugin, PluginError, read_plugin
from panpan.config.plugins.store import Installed, SourceFile, Version, content_of
from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plug-in that has been fetched."""

    plugin: Plugin
    files: Mapping[str, SourceFile]
    version: Version
    source: str
    """Its source, as it can be written anywhere: a folder with its whole path."""
    entry: str
    """Its name in a catalogue; empty if it is in none."""
    fetched_from: Source
    """Source of its files, which a catalogue may name."""
    left_out: Sequence[str]


async def fetch_plugin(wanted: Installed, cwd: Path, fetcher: Fetcher) -> FoundPlugin:
    """Return the plug-in that a user asks for.

    Args:
        wanted: Its source, its name in a catalogue, and its folder.
        cwd: Folder in which relative paths start.
        fetcher: Fetches it.

    Raises:
        ConfigError: It cannot be fetched, or is no plug-in.
    """
    source = replace(parse_source(wanted.source, cwd), path=wanted.path.strip("/"))
    written = source.location if source.kind in ("folder", "archive") else wanted.source
    fetched = await fetcher.fetch(source)
    catalogue = catalogue_in(fetched) if wanted.entry or not _has_manifest(fetched) else None
    if wanted.entry and catalogue is None:
        raise ConfigError(f"{wanted.source} lists no plug-ins; leave out {wanted.entry}")
    name = wanted.entry
    if catalogue is not None:
        name = name or catalogue.only_name(wanted.source)
        entry = catalogue.entry(name)
        below = replace(source, path="")
        source = source_of_entry(entry.get("source"), below)
        from_same = source.kind == below.kind and source.location == below.location
        fetched = with_manifest(fetched.below(source.path) if from_same else await fetcher.fetch(source), entry)
    try:
        plugin = read_plugin(content_of(fetched.files), name or fetched.folder_name)
    except PluginError as error:
        also = f"; left out: {fetched.left_out[0]}" if fetched.left_out else ""
        raise ConfigError(f"{wanted.source}: {error}{also}") from error
    version = Version("", plugin.version, fetched.revision, date.today().isoformat())
    return FoundPlugin(plugin, fetched.files, version, written, name, source, fetched.left_out)


def _has_manifest(fetched: Fetched) -> bool:
    return any(manifest in fetched.files for manifest in MANIFESTS.values())


async def require_unmoved(one: Installed, found: FoundPlugin, fetcher: Fetcher) -> None:
    """Refuse other content under a name that stands for the same content always: a tag, or a version of a package.

    Raises:
        ConfigError: It has other content than it had.
    """
    source, before, now = found.fetched_from, one.current.revision, found.version.revision
    name = now.partition(" ")[0]
    if source.kind == "npm" and before.partition(" ")[0] == name and before != now:
        raise ConfigError(f"version {name} of {source.location} has other content than it had; remove it if you doubt")
    if before != now and await fetcher.is_tag(source):
        raise ConfigError(
            f"the tag {source.ref} has moved from {before[:12]} to {now[:12]}; ask its author, and add the plug-in "
            "anew if that is meant"
        )
