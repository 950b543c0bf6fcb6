"""Which of the files that were found are kept, and what the disk says of them.

The rule: nothing is opened and no link is followed here; what is no file and no link, is too large or cannot be read is
left out, with the reason.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path

from panpan.types.dataclass import dataclass

MAX_IGNORED_FILES = 2_000
MAX_IGNORED_BYTES = 200_000_000
"""Of one folder that git ignores, such as `node_modules`; a larger one is left out as a whole."""

TOO_LONG = "its path is too long"
"""For the system, which takes 4,096 bytes on Linux; git does no better."""

_RECENT_S = 2.0


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """How much is kept."""

    max_file_bytes: int = 20_000_000
    max_files: int = 100_000

    @property
    def max_listing_bytes(self) -> int:
        """Bytes of the names of all files."""
        return 200 * self.max_files

    @property
    def max_new_bytes(self) -> int:
        """Bytes that one snapshot may add."""
        return 100 * self.max_file_bytes


@dataclass(slots=True)
class Looked:
    """What the disk says of some paths."""

    bits: dict[str, int | None] = field(default_factory=dict)
    """Permission bits of the files that are kept; None: a link."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the files that are kept."""
    gone: list[str] = field(default_factory=list)
    """Where neither a file nor a link is any more."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why a file is not kept."""
    recent: list[str] = field(default_factory=list)
    """Files that changed so recently that git, which compares seconds, would miss another change of their bits."""
    folders: Iterable[str] = ()
    """Those that are new, or may have lost their last file."""


def look_at(root: Path, paths: Iterable[str], limits: KeepLimits) -> Looked:
    """Return what is at each of `paths`, which are relative to `root`."""
    found = Looked()
    behind_links = _BehindLinks(root)
    recent_since = time.time() - _RECENT_S
    for path in paths:
        place = f"{root}/{path}"
        try:
            status = os.lstat(place)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                found.left_out[path] = TOO_LONG
            else:
                found.gone.append(path)
            continue
        if stat.S_ISDIR(status.st_mode) or path.rpartition("/")[0] in behind_links:
            found.gone.append(path)
        elif stat.S_ISLNK(status.st_mode) and path.rpartition("/")[2].lower() == ".gitmodules":
            found.left_out[path] = "git keeps no link of this name"
        elif stat.S_ISLNK(status.st_mode):
            found.bits[path] = None
        elif not stat.S_ISREG(status.st_mode):
            found.left_out[path] = "it is no regular file"
        elif status.st_size > limits.max_file_bytes:
            found.left_out[path] = f"it is larger than {limits.max_file_bytes // 1_000_000:,} MB"
        elif not os.access(place, os.R_OK):
            found.left_out[path] = "it cannot be read"
        else:
            if status.st_ctime >= recent_since:
                found.recent.append(path)
            found.bits[path], found.sizes[path] = stat.S_IMODE(status.st_mode), status.st_size
    return found


class _BehindLinks:
    """The folders below a root that are reached through a link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, bool] = {"": False}

    def __contains__(self, folder: str) -> bool:
        unknown = []
        while folder not in self._known:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        is_behind = self._known[folder]
        for below in reversed(unknown):
            is_behind = is_behind or os.path.islink(f"{self._root}/{below}")  # noqa: PTH114
            self._known[below] = is_behind
        return is_behind


def heavy_folders(folders: Sequence[str], sizes: Iterable[tuple[str, int]]) -> list[str]:
    """Return those of `folders` that are too large to be kept.

    Args:
        folders: Each with a slash at its end.
        sizes: New files and their bytes.
    """
    wanted = set(folders)
    counts = dict.fromkeys(folders, 0)
    bytes_ = dict.fromkeys(folders, 0)
    for path, size in sizes:
        end = path.find("/")
        while end >= 0:
            folder = path[: end + 1]
            if folder in wanted:
                counts[folder] += 1
                bytes_[folder] += size
                break
            end = path.find("/", end + 1)
    return [folder for folder in folders if counts[folder] > MAX_IGNORED_FILES or bytes_[folder] > MAX_IGNORED_BYTES]


def bare_repositories(root: Path, paths: Iterable[str]) -> list[str]:
    """Return the folders among those of `paths` that are repositories without a work tree, each with a slash."""
    heads = [path.removesuffix("HEAD") for path in paths if path.endswith("/HEAD")]
    return [folder for folder in heads if all((root / folder / part).is_dir() for part in ("objects", "refs"))]


def environments(root: Path, paths: Iterable[str]) -> list[str]:
    """Return the folders among those of `paths` in which Python packages are installed, each with a slash.

    The marks are those of PEP 405 and of conda; the folder itself is none, whatever lies in it.
    """
    marks = ("pyvenv.cfg", "conda-meta/history")
    found = [path.removesuffix(mark) for path in paths for mark in marks if path.endswith(f"/{mark}")]
    return [folder for folder in found if any((root / folder / part).exists() for part in ("bin", "Scripts"))]


def without_folders(paths: Iterable[str], folders: Iterable[str]) -> list[str]:
    """Return the paths that do not lie in one of `folders`, each of which ends with a slash."""
    prefixes = tuple(folders)
    return [path for path in paths if not path.startswith(prefixes)] if prefixes else list(paths)
