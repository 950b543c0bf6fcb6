"""Which files of a server's folder have changed since it was last told, so that it need not watch them itself.

The rule: nothing is read. Only names, times and sizes are looked at, of the files of the server's languages; where a
folder holds more than can be looked at before each question, it is not watched, and the server, which is told so at its
start, has to see for itself.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from panpan.capabilities.language_servers.catalogue import ServerKind
from panpan.capabilities.language_servers.stamps import Stamp, stamp_of

MAX_ENTRIES = 20_000
MAX_IN_FOLDER = 2_000
"""What holds more is data, and not looked at, with all below it."""
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "target", "build", "dist", "venv", "site-packages"})
_CREATED, _CHANGED, _DELETED = 1, 2, 3
"""As the protocol numbers them (`FileChangeType`)."""


class WatchedFiles:
    """The files of one server.

    Args:
        root: Its folder.
        kind: Which server it is.
        max_entries: Files that are looked at; at least 1.
    """

    def __init__(self, root: Path, kind: ServerKind, *, max_entries: int = MAX_ENTRIES) -> None:
        self._root = root
        self._max_entries = max_entries
        self._endings = tuple(kind.languages)
        self._names = frozenset(kind.roots)
        self._known: dict[str, Stamp] | None = None
        self.is_too_large = False
        """Whether the folder is not watched, as a look has found."""

    def changes(self) -> Sequence[dict[str, Any]]:
        """Return what changed since the last call, as the protocol tells it; nothing at the first. Synchronous."""
        if self.is_too_large:
            return ()
        before, now = self._known, self._look()
        self._known = now
        if before is None or now is None:
            return ()
        kinds = {path: _CREATED if path not in before else _CHANGED for path in now if before.get(path) != now[path]}
        kinds |= dict.fromkeys(before.keys() - now.keys(), _DELETED)
        return [{"uri": Path(path).as_uri(), "type": kind} for path, kind in kinds.items()]

    def _look(self) -> dict[str, Stamp] | None:
        found: dict[str, Stamp] = {}
        for count, entry in enumerate(_entries(str(self._root))):
            if count >= self._max_entries:
                self.is_too_large = True
                return None
            is_source = entry.name.lower().endswith(self._endings) or entry.name in self._names
            if is_source and (stamp := stamp_of(entry)) is not None:
                found[entry.path] = stamp
        return found


def _entries(folder: str) -> Iterator["os.DirEntry[str]"]:
    """Yield all files below a folder, without hidden folders and those that hold data, or what others wrote."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as scan:
                entries = list(islice(scan, MAX_IN_FOLDER + 1))
            for entry in entries if len(entries) <= MAX_IN_FOLDER else ():
                if not entry.is_dir(follow_symlinks=False):
                    yield entry
                elif not entry.name.startswith(".") and entry.name not in _PASSED_OVER:
                    folders.append(entry.path)
        except OSError:
            continue
