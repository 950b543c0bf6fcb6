"""Opening folders by what they are and not by what their names lead to, so that a link put in their way is refused.

The rule: a place that was looked at, and agreed to, by its canonical path is reached through no link at all. Whoever
may write beside it could swap a folder for a link between the look and the write, and this program may write where that
one may not. Synchronous.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Where the system can, a folder is opened without the right to list it, which is not needed on the way."""


@contextmanager
def plain_folder(path: Path, *, is_made: bool = False) -> Iterator[int]:
    """Open a folder, and yield its descriptor for functions that take `dir_fd`.

    Args:
        path: Canonical, absolute.
        is_made: Whether folders that are missing are made.

    Raises:
        OSError: A part of it is missing, is a link or no folder, or cannot be opened.
    """
    fd = open_plain_folder(path, is_made=is_made)
    try:
        yield fd
    finally:
        os.close(fd)


def open_plain_folder(path: Path, *, is_made: bool = False) -> int:
    """Return a descriptor of a folder, as `plain_folder` does; the caller closes it.

    Raises:
        OSError: A part of it is missing, is a link or no folder, or cannot be opened.
    """
    start = os.open(path.anchor, _FLAGS)
    try:
        return open_below(start, path.parts[1:], is_made=is_made)
    finally:
        os.close(start)


def open_below(folder: int, names: Sequence[str], *, is_made: bool = False) -> int:
    """Return a descriptor of a folder some levels below an open one; the caller closes it.

    Args:
        folder: Descriptor of the open one, which stays open.
        names: Of the folders on the way; none of them `..`.
        is_made: Whether folders that are missing are made.

    Raises:
        OSError: A part of the way is missing, is a link or no folder, or cannot be opened.
    """
    here = os.dup(folder)
    for name in names:
        try:
            below = _opened(here, name, is_made=is_made)
        finally:
            os.close(here)
        here = below
    return here


def _opened(folder: int, name: str, *, is_made: bool) -> int:
    try:
        return os.open(name, _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if not is_made:
            raise
    with suppress(FileExistsError):  # another has made it meanwhile; what it is shows when it is opened
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FLAGS, dir_fd=folder)
