"""Which places inside a writable folder stay as they are.

The rule: folders directly in the root from which git, panpan, editors and other agents run things are protected
whether they exist or not. Of the other protected names (`system/files/protected.py`) those that exist are:
all in the root itself, then nearest first, as far as the look goes. Names that are closed only as they are named are
left to programs, which have to install them.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.system.files.protected import may_be_protected, plain_names, protections
from panpan.types.dataclass import dataclass

ALWAYS = (
    ".git", ".panpan", ".claude", ".codex", ".cursor", ".devcontainer", ".gemini", ".github", ".husky", ".idea", ".jj",
    ".kiro", ".mvn", ".opencode", ".qwen", ".svn", ".trae", ".vscode", ".windsurf", ".zed",
)  # fmt: skip
"""Names that are protected in each root although nothing has them yet: git runs what `.git` names as soon as the user's
prompt asks for the branch, an editor what its folder names as soon as the workspace is opened."""

MAX_ENTRIES = 1_000
"""How many files and folders are looked at for protected names; a few milliseconds."""

_SOMEWHERE = Path("/root-of-the-look")
"""Stands for the root, whose own place in the file system must not matter: it may lie in a protected folder."""


@dataclass(frozen=True, slots=True)
class ProtectedPlaces:
    """What one look through a folder found."""

    root: Path
    places: Sequence[Path]
    """Those of `ALWAYS` first."""
    unseen: frozenset[Path]
    """Folders that were not looked through to their end."""

    def has_looked_for(self, place: Path) -> bool:
        """True if the look would have found `place`, which lies below the root, had it been there."""
        if place.parent == self.root and place.name in _looked_for_by_name():
            return True
        return self.unseen.isdisjoint(place.parents)


def protected_places(root: Path) -> ProtectedPlaces:
    """Look for the protected places in `root`, a canonical folder."""
    places = [root / name for name in ALWAYS]
    # By their names first, so that no number of other files can hide what lies in the root itself.
    places += (root / Path(name).parts[0] for name in _closed_names() if os.path.lexists(root / name))
    folders, unseen = deque([str(root)]), set[Path]()
    left = MAX_ENTRIES
    while folders and left > 0:
        folder = folders.popleft()
        unseen.add(Path(folder))
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    break
                place = _place(Path(entry.path), root) if may_be_protected(entry.name) else None
                if place is not None:
                    places.append(place)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
            else:
                unseen.remove(Path(folder))
    return ProtectedPlaces(root, places, frozenset(unseen.union(map(Path, folders))))


def _closed_names() -> Iterator[str]:
    return (name for name, group in plain_names() if not group.is_only_as_named)


def _looked_for_by_name() -> frozenset[str]:
    """Return the names that are looked for in each root, however many entries it has."""
    return frozenset({*ALWAYS, *(name for name in _closed_names() if "/" not in name)})


def is_placeholder(folder: str, *, dir_fd: int | None = None) -> bool:
    """True if a path leads to an empty folder of a name in `ALWAYS`, such as a box needs while it runs.

    Nobody keeps anything in it, so it is neither shown nor counted, whoever made it.

    Args:
        folder: Its path.
        dir_fd: The folder that a relative path starts in; None: the working directory.
    """
    if folder.rpartition("/")[2] not in ALWAYS:
        return False
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        with os.scandir(fd) as entries:
            return next(entries, None) is None
    finally:
        os.close(fd)


def _place(path: Path, root: Path) -> Path | None:
    """Return what to protect for the sake of `path`; None where it is not protected.

    Of a name with several parts, such as `.github/workflows`, that is the first, which cannot be moved away and made
    anew then.
    """
    parts = path.relative_to(root).parts
    for start in range(len(parts) - 1, -1, -1):
        found = protections(_SOMEWHERE.joinpath(*parts[start:]))
        if any(not group.is_only_as_named for group, _ in found):
            return root.joinpath(*parts[: start + 1])
    return None
