"""Catalogues of plug-ins ("marketplaces"): a file of a repository that lists plug-ins and their sources.

The format is that of Claude Code (https://code.claude.com/docs/en/plugin-marketplaces), which Codex shares.
"""

import json
from collections.abc import Mapping
from typing import Any

from panpan.capabilities.plugins.fetching import Fetched
from panpan.config.plugins.manifest import MANIFESTS
from panpan.config.plugins.store import SourceFile
from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

CATALOGUES = (
    ".agents/plugins/marketplace.json",
    ".agents/plugins/api_marketplace.json",
    ".claude-plugin/marketplace.json",
    ".cursor-plugin/marketplace.json",
)
"""Places of a catalogue in a repository, in the order in which they count."""
_OF_CATALOGUE = frozenset({"source", "strict", "category", "tags", "relevance", "policy"})
"""Keys of an entry that speak of the catalogue, and not of the plug-in."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A list of plug-ins."""

    place: str
    entries: Mapping[str, Mapping[str, Any]]
    """Entries by the names of their plug-ins."""

    def entry(self, name: str) -> Mapping[str, Any]:
        """Return what it says of a plug-in; raise `ConfigError` where it has none of this name."""
        if name not in self.entries:
            raise ConfigError(f"{self.place} has no plug-in {name}; it has {', '.join(self.entries)}")
        return self.entries[name]

    def only_name(self, source: str) -> str:
        """Return the name of its only plug-in; raise `ConfigError` where it has several, or none."""
        if not self.entries:
            raise ConfigError(f"{source} is a catalogue without plug-ins")
        if len(self.entries) > 1:
            raise ConfigError(f"{source} lists several plug-ins; say which: {', '.join(self.entries)}")
        return next(iter(self.entries))


def catalogue_in(fetched: Fetched) -> Catalogue | None:
    """Return the catalogue of a source; None where it has none.

    Raises:
        ConfigError: It cannot be read.
    """
    place = next((one for one in CATALOGUES if one in fetched.files), None)
    if place is None:
        return None
    try:
        listed = json.loads(fetched.files[place].data)["plugins"]
        entries = {one["name"]: one for one in listed if isinstance(one["name"], str)}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{place} is no catalogue of plug-ins ({error})") from error
    return Catalogue(place, entries)


def with_manifest(fetched: Fetched, entry: Mapping[str, Any]) -> Fetched:
    """Return a plug-in with what its catalogue says of it, if it has no manifest of its own."""
    if any(manifest in fetched.files for manifest in MANIFESTS.values()):
        return fetched
    said = {key: value for key, value in entry.items() if key not in _OF_CATALOGUE}
    manifest = SourceFile(json.dumps(said, indent=1).encode())
    files = {**fetched.files, MANIFESTS["claude"]: manifest}
    return Fetched(files, fetched.revision, fetched.left_out, fetched.folder_name)
