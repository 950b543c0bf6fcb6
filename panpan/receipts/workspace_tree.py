"""Folders and files of a workspace that receipts speak of."""

import os
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.events import is_generated

FolderKind: TypeAlias = Literal["files", "file", "bytecode", "cache", "kept", "environment"]
"""files: of the workspace; file: a root that is one; bytecode: of Python, which is read in place of sources; cache: of
a program, with folders of what it kept of files, so that it need not read them again; environment: of Python, which is
no part of the workspace."""

_MOST_REMEMBERED = 20_000
_HISTORIES = frozenset({".git", ".hg", ".svn", ".jj"})
_CACHES = frozenset({".mypy_cache", ".ruff_cache", ".gradle", ".turbo", ".parcel-cache", ".next", ".cache"})
BYTECODE = "__pycache__"
ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
"""Names of what each Python environment has at its top."""
ENVIRONMENT_MARK = "pyvenv.cfg"
"""File of a Python environment that its interpreter reads when it starts."""


@lru_cache(_MOST_REMEMBERED)
def is_left_out(name: str) -> bool:
    """Return True for the name of a file or folder that no receipt names: histories, and files made again."""
    return name in _HISTORIES or is_generated(name)


def kind_of_folder(name: str) -> FolderKind | None:
    """Return the kind of a folder by its name; None if nothing in it matters."""
    if name == BYTECODE:
        return "bytecode"
    if name in _CACHES:
        return "cache"
    return None if is_left_out(name) else "files"


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder of a workspace."""

    path: str
    """Canonical."""
    kind: FolderKind
    files: tuple[str, ...] = ()
    """Names of the files of the workspace in it, links and others among them."""
    links: tuple[str, ...] = ()
    """Names of the links among them."""


def walk_folders(top: str, hidden: Collection[str], *, is_root: bool = False) -> Iterator[Folder]:
    """Yield a folder and those below it, each before those below it; no link is followed.

    Of an environment only its top is yielded, of a cache also the folders in it.

    Args:
        top: Canonical.
        hidden: Canonical paths of folders to leave out.
        is_root: True if `top` is a root of the workspace, which belongs to it whatever its name and its files.
    """
    first = "files" if is_root else kind_of_folder(top.rpartition("/")[2])
    pending: list[tuple[str, FolderKind]] = [(top, first)] if first else []
    while pending:
        path, kind = pending.pop()
        if path in hidden:
            continue
        try:
            with os.scandir(path) as entries:
                folders, files, links = _split(entries)
        except OSError:  # it is gone, or may not be listed
            continue
        if kind == "files" and not ENVIRONMENT_MARKS.isdisjoint((*folders, *files)) and not (is_root and path == top):
            kind = "environment"
        if kind == "files":
            files, links = ([name for name in names if not is_left_out(name)] for names in (files, links))
            yield Folder(path, kind, tuple(files), tuple(links))
        else:
            yield Folder(path, kind)
        at = path.rstrip("/")
        if kind == "files":
            pending += [(f"{at}/{name}", below) for name in folders if (below := kind_of_folder(name))]
        elif kind == "cache":
            pending += [(f"{at}/{name}", "kept") for name in folders]


def _split(entries: Iterator["os.DirEntry[str]"]) -> tuple[list[str], list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    links: list[str] = []
    for entry in entries:
        (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        if entry.is_symlink():
            links.append(entry.name)
    return folders, files, links


def source_of_bytecode(folder: str, name: str) -> str:
    """Return the source of a file in a folder of bytecode, such as `a/b.py` of `a/__pycache__/b.cpython-311.pyc`."""
    return f"{folder.rpartition('/')[0]}/{name.partition('.')[0]}.py"
