"""Paths as git has them: relative to the folder that is kept, with a slash at the end where they mean a folder."""

from collections.abc import Iterable, Iterator


def folder_of(path: str) -> str:
    """Return the folder that a file or folder lies in; empty for the one that is kept itself."""
    return path[: path.rfind("/", 0, len(path) - 1) + 1]


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders that a file or folder lies in, the nearest first, without the one that is kept itself."""
    while path := folder_of(path):
        yield path


def all_folders_above(paths: Iterable[str]) -> set[str]:
    """Return every folder that one of the paths lies in, without the one that is kept itself.

    Each folder is climbed from once, so that a tree costs as much as it has folders, however deep it is.
    """
    found: set[str] = set()
    for path in paths:
        for folder in folders_above(path):
            if folder in found:
                break
            found.add(folder)
    return found
