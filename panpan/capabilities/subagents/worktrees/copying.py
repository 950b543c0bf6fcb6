"""Bringing the user's present files into a worktree, byte by byte.

The rule: an agent sees what the user sees, but for what git ignores. Files come from the user's folder and not from
git, so that changes without a commit are there and no filter runs: what LFS keeps elsewhere comes as it lies in the
folder, and what a sparse checkout leaves out is missing here, too.
"""

import errno
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from anyio import to_thread

from panpan.errors import ToolError
from panpan.file_trees.kept_files import TOO_LONG, KeepLimits, look_at
from panpan.system.files.folder_tree import make_folders
from panpan.system.files.read_file import opened_folder
from panpan.system.git.git import run_git
from panpan.types.dataclass import dataclass

_LIST_TIMEOUT_S = 60.0
_REPOSITORY = "it is a repository of its own, or a submodule"


@dataclass(frozen=True, slots=True)
class Listed:
    """What is in a folder, as far as git does not ignore it."""

    files: Sequence[str]
    """Of files and links, whether they are there or were deleted."""
    repositories: Sequence[str] = field(default_factory=tuple)
    """Folders with repositories of their own, each with a slash at its end; what is in them is not listed."""


async def listed(top: Path) -> Listed:
    """Return what git tracks in the work tree `top`, and what is new there and not ignored.

    Raises:
        ToolError: git cannot tell.
    """
    listing = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    found = await run_git(listing, cwd=top, timeout_s=_LIST_TIMEOUT_S)
    if found.timed_out or found.is_truncated:
        raise ToolError(f"{top} holds too many files for a worktree")
    if found.exit_code != 0:
        raise ToolError(f"git cannot tell which files are in {top}; nothing was done")
    paths = [path for path in dict.fromkeys(os.fsdecode(found.stdout).split("\0")) if path]
    return await to_thread.run_sync(_sorted, top, paths)


async def copy_files(source: Path, target: Path, limits: KeepLimits) -> tuple[Sequence[str], Mapping[str, str]]:
    """Copy the files of one work tree into another, which is empty.

    Args:
        source: Top of the user's work tree.
        target: Top of the other.
        limits: How much may be copied.

    Returns:
        The paths that were copied, and why others were not.

    Raises:
        ToolError: There is too much, or a file cannot be copied.
    """
    found = await listed(source)
    return await to_thread.run_sync(_copy, source, target, found, limits)


def _sorted(top: Path, paths: Sequence[str]) -> Listed:
    """Tell repositories from files; of a submodule, git names the folder like a file."""
    repositories = {
        f"{path.rstrip('/')}/" for path in paths if path.endswith("/") or os.path.lexists(f"{top}/{path}/.git")
    }
    inside = tuple(repositories)
    return Listed([path for path in paths if not f"{path}/".startswith(inside)], sorted(repositories))


def _copy(source: Path, target: Path, found: Listed, limits: KeepLimits) -> tuple[Sequence[str], Mapping[str, str]]:
    looked = look_at(source, found.files, limits)
    if len(looked.bits) > limits.max_files:
        raise ToolError(f"{source} holds more than {limits.max_files:,} files, too many for a worktree")
    if sum(looked.sizes.values()) > limits.max_new_bytes:
        raise ToolError(f"{source} holds more than {limits.max_new_bytes // 1_000_000:,} MB, too much for a worktree")
    made: set[str] = set()
    copied: list[str] = []
    for path in looked.bits:
        folder = path.rpartition("/")[0]
        try:
            if folder and folder not in made:
                make_folders(target / folder)
                made.add(folder)
            _copy_file(source / path, target / path)
        except FileNotFoundError:
            continue  # the user has deleted it a moment ago
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # the worktree's own path may be longer than the user's
                looked.left_out[path] = TOO_LONG
                continue
            raise ToolError(f"{path} could not be copied into a worktree: {error}") from error
        copied.append(path)
    for path in found.repositories:
        with suppress(OSError):  # as git leaves a submodule that was not fetched
            make_folders(target / path)
    return copied, looked.left_out | dict.fromkeys(found.repositories, _REPOSITORY)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file with its mode and time, or a link as a link; what is copied is reached through no link.

    Raises:
        OSError: It cannot be copied.
    """
    with opened_folder(source.parent) as folder:
        try:
            target.symlink_to(os.readlink(source.name, dir_fd=folder))
            return
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        fd = os.open(source.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy)
        status = os.fstat(fd)
        copy.flush()
        os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode))
        os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
