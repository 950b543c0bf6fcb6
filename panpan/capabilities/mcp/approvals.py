"""Servers of projects to which the user has said yes.

The rule: a yes covers one project and exactly the command, variables and box that were shown.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_users_file

_MAX_BYTES = 10_000_000
_LOCK_WAIT_S = 5.0


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

    def waits_for(self, entry: ServerEntry) -> bool:
        """True if a server may not run before the user says yes to it."""
        return entry.needs_approval and not self.has(entry)

    def add(self, entry: ServerEntry) -> None:
        """Keep a yes.

        Raises:
            ConfigError: It cannot be kept.
        """
        with self._changing() as every:
            every.setdefault(self._project, {})[entry.name] = entry.digest

    def remove(self, name: str) -> None:
        """Take a yes back, if there is one.

        Raises:
            ConfigError: It cannot be taken back.
        """
        if name in self._all().get(self._project, {}):
            with self._changing() as every:
                every.get(self._project, {}).pop(name, None)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, str]]]:
        """Give all yeses to change, while no other session changes them, and keep them."""
        try:
            make_private_folder(self._file.parent)
            with hold_lock(self._file.with_suffix(".lock"), wait_s=_LOCK_WAIT_S):
                every = {root: dict(names) for root, names in self._all().items()}
                yield every
                write_atomic(self._file, json.dumps(every, indent=1).encode(), mode=0o600)
        except (LockHeldError, LockUnsupportedError, ToolError, OSError) as error:
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
