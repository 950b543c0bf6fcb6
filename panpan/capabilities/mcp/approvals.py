"""Servers of projects to which the user has said yes.

The rule: a yes covers one project and exactly the command, variables and box that were shown.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_users_file

_MAX_BYTES = 10_000_000


class Approvals:
    """The yeses of a project.

    Args:
        folder: Folder of the file with those of all projects.
        project: Canonical root of the project.
    """

    def __init__(self, folder: Path, project: Path) -> None:
        self._file = folder / "approved.json"
        self._project = str(project)

    def has(self, entry: ServerEntry) -> bool:
        """True if the user has said yes to exactly this server."""
        return self._all().get(self._project, {}).get(entry.name) == entry.digest

    def add(self, entry: ServerEntry) -> None:
        """Keep a yes.

        Raises:
            ConfigError: It cannot be kept.
        """
        every = {root: dict(names) for root, names in self._all().items()}
        every.setdefault(self._project, {})[entry.name] = entry.digest
        self._write(every)

    def remove(self, name: str) -> bool:
        """Take a yes back; False if there was none."""
        every = {root: dict(names) for root, names in self._all().items()}
        if every.get(self._project, {}).pop(name, None) is None:
            return False
        self._write(every)
        return True

    def _write(self, every: Mapping[str, Mapping[str, str]]) -> None:
        try:
            make_private_folder(self._file.parent)
            write_atomic(self._file, json.dumps(every, indent=1).encode(), mode=0o600)
        except (ToolError, OSError) as error:
            raise ConfigError(f"the yes to the server cannot be kept: {error}") from error

    def _all(self) -> Mapping[str, Mapping[str, str]]:
        """Return the digests by project and name; a file that cannot be read holds no yes."""
        try:
            kept = json.loads(read_users_file(str(self._file), max_bytes=_MAX_BYTES))
        except (ToolError, ValueError, RecursionError):
            return {}
        if not isinstance(kept, dict):
            return {}
        return {root: names for root, names in kept.items() if isinstance(names, dict)}
