"""All files of a workspace, where nobody sees which ones a command reads."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from panpan.errors import PanpanError
from panpan.file_trees.listed_files import list_files
from panpan.receipts.digests import MB, PARTS_BYTES, Content, FileDigests
from panpan.receipts.workspace_tree import is_left_out, walk_folders
from panpan.types.dataclass import dataclass

MOST_FILES = 20_000
_WHOLE_BYTES = 64 * MB
_MOST_BYTES = 4_000 * MB


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
