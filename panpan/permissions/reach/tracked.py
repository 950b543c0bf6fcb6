"""Which of the files in a folder git tracks, for searches that show no others.

The rule: where that cannot be told, every file counts.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from panpan.permissions.reach.recorded import repository_around
from panpan.system.git.git_index import GitIndex


class TrackedFiles:
    """The files of one repository that git tracks, and the folders that lead to them.

    Args:
        folder: A canonical folder in it.
    """

    def __init__(self, folder: Path) -> None:
        # What lies elsewhere, as of a submodule, is not looked for; it is not that of the repository around, either.
        index = GitIndex.around(folder)
        index = index if index is not None and index.top == repository_around(folder) else None
        self.names = index.names() if index is not None else None
        """As the index has them; None where it cannot be read."""
        self._top = f"{index.top}/" if index is not None else ""
        self._places = frozenset(_with_folders(self.names or ()))

    def relative_to(self, folder: Path) -> Iterator[str]:
        """Yield the names of what is tracked below a canonical folder, relative to it."""
        before = f"{folder}/".removeprefix(self._top)
        return (name.removeprefix(before) for name in self.names or () if name.startswith(before))

    def may_lead_to(self, path: str) -> bool:
        """Return whether git may track what lies at the absolute `path`, or something below it."""
        if self.names is None or not path.isascii() or not path.startswith(self._top):
            return True  # git may write a name with an accent in more than one way
        return path.removeprefix(self._top).casefold() in self._places


def why_unclear(folders: Iterable[Path], odd_names: re.Pattern[str] | None = None) -> str | None:
    """Return why it is not sure that git, asked for what it tracks in these folders, names only what lies there.

    Args:
        folders: Canonical folders, from which git starts.
        odd_names: Found in names that would not arrive as they are; a file need not be there for git to name it.
    """
    for folder in folders:
        tracked = TrackedFiles(folder)
        names = tracked.names
        if names is None:
            return f"which files git tracks in {folder} cannot be told; use find with -exec … {{}} +"
        if odd := next((name for name in names if name.startswith("/") or ".." in name.split("/")), None):
            return f"git would name {odd}, which lies elsewhere"
        here = tracked.relative_to(folder) if odd_names is not None else ()
        if odd_names is not None and (odd := next(filter(odd_names.search, here), None)):
            return not_as_it_is(str(folder / odd))
    return None


def not_as_it_is(path: str) -> str:
    """Return the reason for which a path may not be handed on by xargs."""
    return f"xargs would not take the name {path} as it is; use find with -exec … {{}} +"


def _with_folders(names: Iterable[str]) -> Iterator[str]:
    """Yield names and all that leads to them, without regard to case."""
    folders: set[str] = set()
    for name in names:
        yield name.casefold()
        folder = os.path.dirname(name)  # noqa: PTH120 - strings, of which there are many
        if folder and folder not in folders:
            parts = PurePosixPath(folder)
            folders |= {str(parts), *(str(parent) for parent in parts.parents)}
    yield from (folder.casefold() for folder in folders)
