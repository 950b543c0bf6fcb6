"""Folders and files of a workspace that receipts speak of."""

import os
from collections.abc import Collection, Iterator

from panpan.types.events import is_generated

_NEVER = frozenset({".git", ".hg", ".svn", ".jj"})
ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
"""Names of what each Python environment has at its top."""
ENVIRONMENT_MARK = "pyvenv.cfg"
"""File of a Python environment that its interpreter reads when it starts."""


def is_left_out(name: str) -> bool:
    """Return True for the name of a file or folder that no receipt speaks of: histories, and files made again."""
    return name in _NEVER or is_generated(name)


class Folder:
    """One folder of a workspace."""

    __slots__ = ("files", "is_environment", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        """Canonical."""
        self.files: list[str] = []
        """Names of what is no folder, links among them."""
        self.is_environment = False
        """True if it is an environment, whose files are no part of the workspace."""


def walk_folders(top: str, hidden: Collection[str], *, is_root: bool = False) -> Iterator[Folder]:
    """Yield a folder and those below it, each before those below it; no link is followed.

    Args:
        top: Canonical.
        hidden: Canonical paths of folders to leave out.
        is_root: True if `top` is a root of the workspace, which belongs to it even if it is an environment, too.
    """
    pending = [top]
    while pending:
        folder = Folder(pending.pop())
        if folder.path in hidden:
            continue
        below: list[str] = []
        try:
            with os.scandir(folder.path) as entries:
                for entry in entries:
                    folder.is_environment = folder.is_environment or entry.name in ENVIRONMENT_MARKS
                    if is_left_out(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    else:
                        folder.files.append(entry.name)
        except OSError:  # it is gone, or may not be listed
            continue
        if is_root and folder.path == top:
            folder.is_environment = False
        if folder.is_environment:
            folder.files.clear()
            below.clear()
        yield folder
        pending += below
