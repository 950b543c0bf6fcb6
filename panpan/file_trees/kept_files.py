"""Choosing the files of a folder that are kept: those that may have changed since git last looked.

The rule: nothing is opened and no link is followed here; what is no file and no link, is too large or cannot be read
is left out, with the reason.

In a folder of few files panpan looks at each of them, which takes less time than to start a process. In a larger one
git looks, in two processes side by side, and gets no ignore rules. It only names folders of which it knows no file,
repositories and empty folders among them; these are walked through here.
"""

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from anyio import create_task_group, to_thread

from panpan.errors import ToolError
from panpan.file_trees.own_repository import OwnRepository, TooMuchError
from panpan.file_trees.snapshot import all_folders_above, folder_of, folders_above
from panpan.system.files.atomic_write import is_temporary_name
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_IGNORED_FILES = 2_000
MAX_IGNORED_BYTES = 200_000_000
"""Most of one folder that git ignores, such as `node_modules`; a larger one is left out as a whole."""

TOO_LONG = "its path is too long"
"""Said of the system, which takes 4,096 bytes on Linux; git does no better."""

_RECENT_S = 2.0
_FINE_RECENT_NS, _RECENT_NS = 100_000_000, 2_100_000_000
"""Age of a change from which on a further one shows in the times of the file: where these are fine, and where not."""
_MS_IN_NS = 1_000_000
_FILE_CLOCK = 5 if sys.platform == "linux" else None
"""CLOCK_REALTIME_COARSE of linux/time.h, by which Linux sets the times of files; it may stand still for a while."""

FileState: TypeAlias = tuple[int, int, int, int, int, int]
"""State of a file that no other file has, nor the same one after any change."""


def _file_time_ns() -> int:
    return time.time_ns() if _FILE_CLOCK is None else time.clock_gettime_ns(_FILE_CLOCK)


def _shows_changes(status: os.stat_result, now_ns: int) -> bool:
    """True if any change from now on shows in the times of a file.

    Times in whole milliseconds may come from a file system that keeps no more than seconds, and those of a file system
    without a block device from the clock of another machine.
    """
    is_fine = _FILE_CLOCK is not None and os.major(status.st_dev) != 0 and status.st_ctime_ns % _MS_IN_NS != 0
    return status.st_ctime_ns < now_ns - (_FINE_RECENT_NS if is_fine else _RECENT_NS)


def _state_of(status: os.stat_result) -> FileState:
    return (
        status.st_ctime_ns,
        status.st_mtime_ns,
        status.st_size,
        status.st_mode,
        status.st_ino,
        status.st_dev,
    )


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """Most that is kept of a folder."""

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
class PathStates:
    """State of some paths on the disk."""

    bits: dict[str, int | None] = field(default_factory=dict)
    """Permission bits of the files that are kept; None for a link."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the files that are kept."""
    gone: list[str] = field(default_factory=list)
    """Paths where neither a file nor a link is any more."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons why files are not kept."""
    recent: list[str] = field(default_factory=list)
    """Files that changed so recently that git, which compares seconds, would miss another change of their bits."""
    states: dict[str, FileState] = field(default_factory=dict)
    """States of the files and links that are kept, as far as another change would show in them."""

    def leave_out_below(self, folders: Iterable[str]) -> None:
        """Forget what lies in these folders, which are left out as a whole."""
        kept = set(without_folders([*self.bits, *self.left_out], folders))
        self.bits = {path: mode for path, mode in self.bits.items() if path in kept}
        self.states = {path: state for path, state in self.states.items() if path in kept}
        self.left_out = {path: why for path, why in self.left_out.items() if path in kept}


def stat_paths(root: Path, paths: Iterable[str], limits: KeepLimits) -> PathStates:
    """Return what is at each of `paths`, which are relative to `root`."""
    found = PathStates()
    behind_links = BehindLinks(root)
    now_ns = _file_time_ns()
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
            found.left_out[path] = "it is not a regular file"
        elif status.st_size > limits.max_file_bytes:
            found.left_out[path] = f"it is larger than {limits.max_file_bytes // 1_000_000:,} MB"
        elif not os.access(place, os.R_OK):
            found.left_out[path] = "it cannot be read"
        else:
            if status.st_ctime >= recent_since:
                found.recent.append(path)
            found.bits[path], found.sizes[path] = stat.S_IMODE(status.st_mode), status.st_size
        if path in found.bits and _shows_changes(status, now_ns):
            found.states[path] = _state_of(status)
    return found


def read_folder_bits(root: Path, folder: str) -> int | None:
    """Return the permission bits of a folder, which ends with a slash; None if none is there."""
    try:
        status = os.lstat(f"{root}/{folder[:-1]}")
    except OSError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISDIR(status.st_mode) else None


def has_free_place(root: Path, path: str) -> bool:
    """True if neither a folder nor a file in place of a folder above keeps a file from being made at a path."""
    if read_folder_bits(root, f"{path}/") is not None:
        return False
    above = next((one for one in folders_above(path) if os.path.lexists(f"{root}/{one[:-1]}")), None)
    return above is None or read_folder_bits(root, above) is not None


class BehindLinks:
    """Tells of folders of `root`, without slashes at their ends, that they are links or lie behind one."""

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
    """Return those of `folders` that are too large to be kept; `sizes` are new files and their bytes."""
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


_SHUT = compile_late(rb"warning: could not open directory '(.*?)': (?!No such file|Not a directory)", re.DOTALL)
_NO_ENTRY = "it cannot be entered"
_NO_NAME = "git keeps nothing of this name"


@dataclass(slots=True)
class Found:
    """Result of one look at a folder; folders end with a slash."""

    changed: list[str] = field(default_factory=list)
    """Paths that git knows, whose files may have changed or gone."""
    new: list[str] = field(default_factory=list)
    """Files that it does not know."""
    folders: list[str] = field(default_factory=list)
    """Folders of which it knows no file."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Reasons why a file or folder could not be looked at, or has no place in git."""


class FileFinder:
    """Looks at the folder that is the work tree of a repository, for what the index of git does not have.

    Canonical folders and files that are `hidden` are not looked at.
    """

    def __init__(self, repository: OwnRepository, index: Path, limits: KeepLimits, hidden: Iterable[Path] = ()) -> None:
        self._repository = repository
        self._root = repository.work_tree
        self._index = index
        self._excludes = index.with_name(f"{index.name}.excludes")
        self._max_files = limits.max_files
        self._max_bytes = limits.max_listing_bytes
        self.leavings: Set[str] = frozenset()
        """Folders in which the newest look saw what panpans that were killed have left while they wrote."""
        self._hidden = frozenset(str(one.relative_to(self._root)) for one in hidden if one.is_relative_to(self._root))
        self._closed = {f"{path}/" for path in self._hidden}

    def prepare(self) -> None:
        """Write down what git is not to look into."""
        self._excludes.write_bytes(b"".join(map(_pattern, sorted(self._closed))))

    def close(self, folders: Iterable[str]) -> None:
        """Look into these folders no more; each has a slash at its end."""
        self._closed.update(folders)
        self.prepare()

    def is_hidden(self, path: str) -> bool:
        """True if a path is one of the hidden files, or in a hidden folder."""
        return path in self._hidden or any(folder[:-1] in self._hidden for folder in folders_above(path))

    async def find(self, known: Mapping[str, FileState | None] | None = None) -> Found:
        """Return what may have changed, and what is new.

        Args:
            known: States of all files that are kept, None for those that have to be looked at again; None: git looks.

        Raises:
            ToolError: git cannot look; `TooMuchError` where there is too much.
        """
        found = await (self._found_by_git() if known is None else to_thread.run_sync(self._found_by_walk, known))
        await to_thread.run_sync(self._sift, found)
        return found

    def _sift(self, found: Found) -> None:
        """Leave out what is not kept."""
        for path in [path for path in (*found.new, *found.folders) if is_refused_by_git(path)]:
            found.left_out[path] = _NO_NAME
        self.leavings = {folder_of(path) for path in found.new if is_temporary_name(path)}
        not_kept = self._hidden | found.left_out.keys()
        found.changed = [path for path in found.changed if path not in self._hidden]
        found.new = [path for path in found.new if path not in not_kept and not is_temporary_name(path)]
        found.folders = [path for path in found.folders if found.left_out.get(path) != _NO_NAME]

    async def _found_by_git(self) -> Found:
        printed: dict[str, bytes] = {}
        warnings: list[bytes] = []
        everything = ("ls-files", "-o", "-z", "--directory", f"--exclude-from={self._excludes}")
        errors: list[ToolError] = []

        async def ask(name: str, *args: str) -> None:
            look = partial(self._repository.run, index=self._index, max_bytes=self._max_bytes)
            try:
                printed[name] = await look(*args, note_warnings=warnings.append)
            except ToolError as error:  # collect both, so that one cause gives one error
                errors.append(error)

        async with create_task_group() as tasks:
            tasks.start_soon(ask, "changed", "diff-files", "--name-only", "-z")
            tasks.start_soon(ask, "new", *everything)
        if errors:
            raise errors[0]
        found = Found(changed=paths_in(printed["changed"]))
        found.left_out = {os.fsdecode(path): _NO_ENTRY for text in warnings for path in _SHUT.findall(text)}
        names = without_folders(paths_in(printed["new"]), self._closed)
        found.new = [path for path in names if not path.endswith("/")]
        at_files = {f"{path}/" for path in found.changed if self._is_folder(path)}  # git names no files in these
        folders = {path for path in names if path.endswith("/")}
        await to_thread.run_sync(self._walk, found, (folders | at_files) - self._closed, {})
        return found

    def _found_by_walk(self, known: Mapping[str, FileState | None]) -> Found:
        found = Found()
        unchanged = self._walk(found, {""}, known)
        shut = tuple(path for path, why in found.left_out.items() if why == _NO_ENTRY)
        found.changed = without_folders((path for path in known if path not in unchanged), shut)
        return found

    async def heavy_folders(self, sizes: Mapping[str, int], new: Iterable[str]) -> Sequence[str]:
        """Return the folders that git ignores and that hold too many of the new files, or too much."""
        new = list(new)
        inner = await to_thread.run_sync(lambda: sorted(filter(self._is_repository, all_folders_above(new))))
        nothing = self._index.with_name(f"{self._index.name}.none")  # no index, so that git lists every file
        args = ("ls-files", "-i", "-o", "--directory", "--exclude-per-directory=.gitignore", "-z")
        ignored = []
        for folder in ("", *inner):
            look = partial(self._repository.run, index=nothing, work_tree=self._root / folder)
            printed = await look(*args, max_bytes=self._max_bytes)
            ignored += [folder + path for path in paths_in(printed) if path.endswith("/")]
        return await to_thread.run_sync(lambda: heavy_folders(ignored, [(path, sizes.get(path, 0)) for path in new]))

    def _walk(self, found: Found, folders: Set[str], known: Mapping[str, FileState | None]) -> Set[str]:
        """Add all that is below folders, but for known files; what is called `.git` is not looked into.

        Returns:
            The known files that are in their state.
        """
        unchanged = set[str]()
        waiting = sorted(folders)
        while waiting:
            here = waiting.pop()
            if here:
                found.folders.append(here)
            if is_refused_by_git(here):
                continue
            try:
                with os.scandir(f"{self._root}/{here}") as entries:
                    for entry in entries:
                        path = here + entry.name
                        if entry.name == ".git":
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            waiting += {f"{path}/"} - self._closed
                        elif path in known:
                            unchanged.update((path,) if _is_in_state(entry, known[path]) else ())
                        elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                            found.new.append(path)
            except OSError as error:
                _note_trouble(found, here, error)
            if len(found.new) + len(found.folders) > 2 * self._max_files:
                raise TooMuchError(f"it holds more than {self._max_files:,} files")
        return unchanged

    def _is_repository(self, folder: str) -> bool:
        return os.path.lexists(f"{self._root}/{folder}.git")

    def _is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(f"{self._root}/{path}").st_mode)
        except OSError:
            return False


def _note_trouble(found: Found, folder: str, error: OSError) -> None:
    if not folder:
        raise error
    if error.errno not in (errno.ENOENT, errno.ENOTDIR):  # otherwise it was deleted during the walk
        found.left_out[folder] = TOO_LONG if error.errno == errno.ENAMETOOLONG else _NO_ENTRY


def _is_in_state(entry: "os.DirEntry[str]", state: FileState | None) -> bool:
    try:
        return _state_of(entry.stat(follow_symlinks=False)) == state
    except FileNotFoundError:
        return False
    except OSError:  # git, too, takes a file at which nobody may look for unchanged
        return True


def paths_in(printed: bytes) -> list[str]:
    """Return the paths that git printed with `-z`."""
    return [path for path in os.fsdecode(printed).split("\0") if path]


def is_refused_by_git(path: str) -> bool:
    """True if git refuses a path, as it does where a part of it is `.git` in any case of its letters."""
    return "/.git/" in f"/{path.lower()}/"


def _pattern(folder: str) -> bytes:
    """Return the line of an exclude file for one folder; nothing if no such line can name it."""
    if "\n" in folder:
        return b""
    escaped = "".join(f"\\{character}" if character in "\\*?[]!# " else character for character in folder)
    return os.fsencode(f"/{escaped}\n")
