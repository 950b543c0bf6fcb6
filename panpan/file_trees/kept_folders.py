"""The folders of a snapshot: their permission bits, and those without files, of which git itself keeps nothing."""

import os
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from panpan.file_trees.paths import all_folders_above, folder_of
from panpan.system.sandbox.protected_places import is_placeholder


class KeptFolders:
    """The folders in which files are kept, and the empty ones beside them.

    Args:
        root: The folder that is kept; canonical.
        paths: The files that are kept.
    """

    def __init__(self, root: Path, paths: Iterable[str] = ()) -> None:
        self.bits: dict[str, int] = {}
        """Permission bits of each folder that is there."""
        self.empty: frozenset[str] = frozenset()
        """Those in which no file is kept, however deep."""
        self._root = root
        self._files = Counter(map(folder_of, paths))
        """How many files are kept right in a folder."""

    def note(self, added: Iterable[str], gone: Iterable[str]) -> None:
        """Take note of files that are kept from now on, and of those that no longer are."""
        self._files.update(map(folder_of, added))
        self._files.subtract(map(folder_of, gone))

    def look(self, seen: Iterable[str]) -> None:
        """Look at all folders that are known, but for what a box that runs has put there.

        Args:
            seen: Those that may be new, or without files by now.
        """
        held = self._with_files()
        bits = {}
        for folder in {*held, *self.empty, *seen}:
            try:
                status = os.lstat(f"{self._root}/{folder[:-1]}")
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode) and (folder in held or not is_placeholder(f"{self._root}/{folder[:-1]}")):
                bits[folder] = stat.S_IMODE(status.st_mode)
        self.bits, self.empty = bits, frozenset(bits.keys() - held)

    def _with_files(self) -> set[str]:
        """Return the folders that files are kept in, right there or deeper."""
        direct = [folder for folder, count in self._files.items() if count > 0 and folder]
        return {*direct, *all_folders_above(direct)}
