"""Paths as commands are given them, placed where the line starts.

The rule: where it is not known in which directory a command runs, none of its relative paths has a place.
"""

import posixpath
from collections.abc import Iterable

HERE = (".",)
"""The directories of a command that runs where the line starts."""


def placed(paths: tuple[str, ...] | None, directories: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return paths relative to where the line starts; None where there is one of which that is not known.

    Args:
        paths: Relative to the directory of a command, or absolute; None: unknown.
        directories: In which it may run, as in `SimpleCommand.directories`.
    """
    if not paths or directories == HERE:
        return paths
    if directories is None and not all(path.startswith("/") for path in paths):
        return None
    folders = HERE if directories is None else directories
    return unique(_joined(folder, path) for folder in folders for path in paths)


def unique(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths, each once."""
    return tuple(dict.fromkeys(paths))


def _joined(folder: str, path: str) -> str:
    if folder == "." or path == ".":
        return path if folder == "." else folder
    return posixpath.join(folder, path)
