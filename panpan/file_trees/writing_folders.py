"""Bringing folders back: those that are missing, those that have to go, and their permission bits.

The rule: a folder goes only while nothing is in it, so that what the user or anybody else put there stays.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from panpan.errors import ToolError
from panpan.file_trees.differences import Difference
from panpan.system.files.beneath import open_below, opened_folder, set_mode_in

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
    with opened_folder(root) as top:
        for one in folders:
            if one.before is not None:
                _set_bits(top, one.path, (one.before.mode or 0) | _OPEN)


def exchange_folders(root: Path, folders: Sequence[Difference]) -> Sequence[Difference]:
    """Remove the folders that shall be gone, make those that are missing, and return which have to stay.

    Raises:
        ToolError: Something else is in the place of one.
        OSError: The system does not let the user.
    """
    in_use = []
    with opened_folder(root) as top:
        for one in sorted(folders, key=_depth, reverse=True):
            if one.after is None:
                try:
                    with opened_above(top, one.path) as (above, name):
                        os.rmdir(name, dir_fd=above)
                except OSError as error:
                    if error.errno in _IN_USE:
                        in_use.append(one)
                    elif error.errno not in _IS_GONE:
                        raise
        for one in sorted(folders, key=_depth):
            if one.before is None:
                with suppress(FileExistsError), opened_above(top, one.path) as (above, name):
                    os.mkdir(name, mode=_OPEN, dir_fd=above)
                _set_bits(top, one.path, (one.after.mode if one.after and one.after.mode else 0) | _OPEN)
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
    staying = {one.path for one in in_use}
    with opened_folder(root) as top:
        for one in sorted(folders, key=_depth, reverse=True):
            wanted = one.before if one.path in staying else one.after
            if wanted is not None:
                _set_bits(top, one.path, wanted.mode or 0)


def require_own_place(root: Path) -> None:
    """Refuse a folder of the workspace that is gone, or whose name leads elsewhere by now.

    Raises:
        ToolError: It is so.
    """
    if not root.is_dir() or root.resolve() != root:
        raise ToolError(f"{root} is no folder any more, or a link to another one")


def _set_bits(top: int, path: str, bits: int) -> None:
    with suppress(FileNotFoundError), opened_above(top, path) as (above, name):
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{path} is no folder any more")
        if stat.S_IMODE(status.st_mode) != bits:
            set_mode_in(above, name, bits)


@contextmanager
def opened_above(top: int, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that a folder lies in, and yield its descriptor and the name in it.

    The way stays text, since making a `Path` of each folder of a deep tree takes longer than all else.

    Args:
        top: Descriptor of the folder that `path` is relative to.
        path: As git has it.

    Raises:
        OSError: A part of the way is missing, is a link or no folder, or cannot be opened.
    """
    *above, name = path.removesuffix("/").split("/")
    fd = open_below(top, above)
    try:
        yield fd, name
    finally:
        os.close(fd)


def _depth(change: Difference) -> int:
    return change.path.count("/")
