"""Bringing folders back: those that are missing, those that have to go, and their permission bits.

The rule: a folder goes only while nothing is in it, so that what the user or anybody else put there stays.
"""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.errors import ToolError
from panpan.services.snapshots.differences import Difference
from panpan.system.beneath import opened_folder, set_mode, status_of

_OPEN = stat.S_IRWXU
"""What the user needs to change what is in a folder of his."""
_IN_USE = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_IS_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})


def open_folders(root: Path, folders: Sequence[Difference]) -> None:
    """Let the user change what is in those folders that get other permission bits, or go.

    Args:
        root: The folder that they lie in.
        folders: From what is there now to what shall be.

    Raises:
        ToolError: One is no folder any more.
        OSError: The system does not let him.
    """
    for one in folders:
        if one.before is not None:
            _set_bits(root, one.path, (one.before.mode or 0) | _OPEN)


def exchange_folders(root: Path, folders: Sequence[Difference]) -> Sequence[Difference]:
    """Remove the folders that shall be gone, make those that are missing, and return which have to stay.

    Raises:
        ToolError: Something else is in the place of one.
        OSError: The system does not let the user.
    """
    in_use = []
    for one in sorted(folders, key=_depth, reverse=True):
        if one.after is None:
            place = root / one.path
            try:
                with opened_folder(place.parent) as above:
                    os.rmdir(place.name, dir_fd=above)
            except OSError as error:
                if error.errno in _IN_USE:
                    in_use.append(one)
                elif error.errno not in _IS_GONE:
                    raise
    for one in sorted(folders, key=_depth):
        if one.before is None:
            place = root / one.path
            with suppress(FileExistsError), opened_folder(place.parent) as above:
                os.mkdir(place.name, mode=_OPEN, dir_fd=above)
            _set_bits(root, one.path, (one.after.mode if one.after and one.after.mode else 0) | _OPEN)
    return in_use


def close_folders(root: Path, folders: Iterable[Difference], in_use: Sequence[Difference]) -> None:
    """Give the folders their permission bits, when all that goes into them is there.

    Args:
        root: The folder that they lie in.
        folders: From what was there to what shall be.
        in_use: What `exchange_folders` returned.

    Raises:
        ToolError: One is no folder any more.
        OSError: The system does not let the user.
    """
    for one in sorted(folders, key=_depth, reverse=True):
        wanted = one.before if one in in_use else one.after
        if wanted is not None:
            _set_bits(root, one.path, wanted.mode or 0)


def require_own_place(root: Path) -> None:
    """Refuse a folder of the workspace that is gone, or whose name leads elsewhere by now.

    Raises:
        ToolError: It is so.
    """
    if not root.is_dir() or root.resolve() != root:
        raise ToolError(f"{root} is no folder any more, or a link to another one")


def _set_bits(root: Path, path: str, bits: int) -> None:
    place = root / path
    try:
        status = status_of(place)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{place} is no folder any more")
    if stat.S_IMODE(status.st_mode) != bits:
        set_mode(place, bits)


def _depth(change: Difference) -> int:
    return change.path.count("/")
