"""Folders and files of a workspace that receipts speak of: where they are, all of them digested, and what git says."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from anyio import to_thread

from panpan.errors import PanpanError
from panpan.file_trees.listed_files import list_files
from panpan.receipts.digests import MB, PARTS_BYTES, Content, FileDigests
from panpan.system.git.git import run_git
from panpan.types.dataclass import dataclass
from panpan.types.events import VERSION_CONTROL_FOLDERS, is_generated

FolderKind: TypeAlias = Literal["files", "file", "bytecode", "cache", "kept", "environment"]
"""files: of the workspace; file: a root that is one; bytecode: of Python, which is read in place of sources; cache: of
a program, with folders of what it kept of files, so that it need not read them again; environment: of Python, which is
no part of the workspace."""

MOST_FILES = 20_000
"""Most files of a workspace that are read where nobody sees which ones a command reads."""
_WHOLE_BYTES = 64 * MB
_MOST_BYTES = 4_000 * MB
_MOST_ASKED = 500
"""Most files that git is asked about at a time."""
_MOST_ANSWERS = 50_000
_MOST_NAMES = 20_000
_CACHES = frozenset({".mypy_cache", ".ruff_cache", ".gradle", ".turbo", ".parcel-cache", ".next", ".cache"})
_BYTECODE = "__pycache__"
ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
"""Names of what each Python environment has at its top."""
ENVIRONMENT_MARK = "pyvenv.cfg"
"""File of a Python environment that its interpreter reads when it starts."""


@lru_cache(_MOST_NAMES)
def is_left_out(name: str) -> bool:
    """Return True for the name of a file or folder that no receipt names: histories, and files made again."""
    return name in VERSION_CONTROL_FOLDERS or is_generated(name)


def kind_of_folder(name: str) -> FolderKind | None:
    """Return the kind of a folder by its name; None if nothing in it matters."""
    if name == _BYTECODE:
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


@dataclass(frozen=True, slots=True)
class AllFiles:
    """Files of a workspace as they are."""

    contents: Mapping[str, Content]
    """By canonical path, sorted."""
    sha256: str
    """Hex; of all paths and digests."""


async def read_all_files(roots: Sequence[Path], hidden: Collection[Path], digests: FileDigests) -> AllFiles | None:
    """Return the files of a workspace, in a repository without those that git ignores; None if they are too many."""
    paths: list[str] = []
    for root in roots:
        listed = await _listed(root, hidden)
        if len(paths) + len(listed) > MOST_FILES:
            return None
        paths += listed
    return await to_thread.run_sync(_read, sorted(set(paths)), digests)


async def _listed(root: Path, hidden: Collection[Path]) -> Sequence[str]:
    left_out = {str(folder) for folder in hidden}
    if await to_thread.run_sync(root.is_file):
        return [str(root)]
    try:
        found = await list_files(root)
    except (PanpanError, OSError):  # it is no repository
        return await to_thread.run_sync(_first, _walked(str(root), left_out))
    paths = [f"{root}/{path}" for path in found.files if not any(map(is_left_out, path.split("/")))]
    if left_out:
        paths = [path for path in paths if not _is_below(path, left_out)]
    below = (path for name in found.repositories for path in _walked(f"{root}/{name}".rstrip("/"), left_out))
    return [*paths, *await to_thread.run_sync(_first, below)]


def _walked(top: str, hidden: Collection[str]) -> Iterator[str]:
    for folder in walk_folders(top, hidden, is_root=True):
        for name in folder.files:
            yield f"{folder.path.rstrip('/')}/{name}"


def _first(paths: Iterator[str]) -> Sequence[str]:
    return [path for path, _ in zip(paths, range(MOST_FILES + 1), strict=False)]


def _is_below(path: str, folders: Collection[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _read(paths: Sequence[str], digests: FileDigests) -> AllFiles | None:
    sizes = [_size(path) for path in paths]
    whole_bytes = _WHOLE_BYTES if sum(sizes) <= _MOST_BYTES else PARTS_BYTES
    if sum(min(size, whole_bytes) for size in sizes) > _MOST_BYTES:
        return None
    contents = digests.read_all(paths, whole_bytes=whole_bytes)
    total = sha256()
    for path in paths:
        content = contents[path]
        if content.how != "gone":
            said = content.sha256 or _target(path)
            time = content.changed_ns if content.how == "parts" else 0
            total.update(f"{said} {time} {path}\n".encode("utf-8", "surrogateescape"))
    there = {path: contents[path] for path in paths if contents[path].how not in ("gone", "left out")}
    return AllFiles(there, total.hexdigest())


def _size(path: str) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _target(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of files
    except OSError:
        return ""


class GitFiles:
    """Answers of git about the files of a workspace: those that it tracks or ignores. It is asked about each file once.

    Args:
        roots: Folders of the workspace; canonical.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._ignored: dict[str, bool] = {}
        self._tracked: dict[str, bool] = {}

    async def ignored(self, paths: Iterable[str]) -> set[str]:
        """Return those of the canonical paths that git ignores and does not track; none where it cannot say."""
        return await self._asked(["check-ignore", "--"], paths, self._ignored)

    async def tracked(self, paths: Iterable[str]) -> set[str]:
        """Return those of the canonical paths that git tracks; none where it cannot say."""
        return await self._asked(["ls-files", "-z", "--"], paths, self._tracked)

    async def _asked(self, question: Sequence[str], paths: Iterable[str], known: dict[str, bool]) -> set[str]:
        wanted = list(paths)
        for root in self._roots:
            new = [path for path in wanted if path not in known and path.startswith(f"{root}/")][:_MOST_ASKED]
            if new:
                answer = await _ask(question, new, root)
                known |= {path: path in answer for path in new}
        while len(known) > _MOST_ANSWERS:
            del known[next(iter(known))]
        return {path for path in wanted if known.get(path)}


async def _ask(question: Sequence[str], paths: Sequence[str], root: Path) -> set[str]:
    relative = {path[len(str(root)) + 1 :]: path for path in paths}
    with suppress(PanpanError, OSError, ValueError):
        said = await run_git([*question, *relative], cwd=root)
        if said.exit_code in (0, 1) and not said.timed_out:
            text = said.stdout.decode("utf-8", "surrogateescape")
            return {relative[name] for name in text.replace("\0", "\n").split("\n") if name in relative}
    return set()
