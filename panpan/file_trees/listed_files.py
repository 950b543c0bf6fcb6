"""Listed files of a work tree: those that git does not ignore, copied elsewhere, or kept as a snapshot.

The rule: no link is followed, what is no file and no link is left out with the reason, and git runs nothing that the
repository names.
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

from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.kept_files import TOO_LONG, KeepLimits, paths_in, stat_paths
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Modes, Snapshot, commit_of, message_of, modes_of, snapshot_from
from panpan.system.files.folder_tree import make_folders
from panpan.system.files.read_file import opened_folder
from panpan.system.git.git import run_git
from panpan.types.dataclass import dataclass

_LIST_TIMEOUT_S = 60.0
_ADVICE = "make it smaller, or let .gitignore name what is not needed"
_NOT_COPIED = "it is a repository of its own, or a submodule"


@dataclass(frozen=True, slots=True)
class WorkTreeFiles:
    """Files that git does not ignore."""

    files: Sequence[str]
    """Files and links, also deleted ones."""
    repositories: Sequence[str] = field(default_factory=tuple)
    """Nested repositories, each with a slash at its end; their files are not listed."""


async def list_files(top: Path) -> WorkTreeFiles:
    """Return tracked and new files of the work tree `top`."""
    listing = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    found = await run_git(listing, cwd=top, timeout_s=_LIST_TIMEOUT_S)
    if found.timed_out or found.is_truncated:
        raise ToolError(f"{top} holds too many files for a copy; {_ADVICE}")
    if found.exit_code != 0:
        raise ToolError(f"git cannot tell which files are in {top}; nothing was done")
    paths = [path for path in dict.fromkeys(os.fsdecode(found.stdout).split("\0")) if path]
    return await to_thread.run_sync(split_repositories, top, paths)


async def copy_files(source: Path, target: Path, limits: KeepLimits) -> tuple[Sequence[str], Mapping[str, str]]:
    """Copy the files of one work tree into an empty one; return copied paths, and reasons why others were not."""
    found = await list_files(source)
    return await to_thread.run_sync(copy_listed, source, target, found, limits)


def split_repositories(top: Path, paths: Sequence[str]) -> WorkTreeFiles:
    """Tell repositories from files; of a submodule, git names the folder like a file."""
    repositories = {
        f"{path.rstrip('/')}/" for path in paths if path.endswith("/") or os.path.lexists(f"{top}/{path}/.git")
    }
    inside = tuple(repositories)
    return WorkTreeFiles([path for path in paths if not f"{path}/".startswith(inside)], sorted(repositories))


def copy_listed(
    source: Path, target: Path, found: WorkTreeFiles, limits: KeepLimits
) -> tuple[Sequence[str], Mapping[str, str]]:
    """Copy listed files into an empty folder; return copied paths, and reasons why others were not.

    Raises:
        ToolError: They are too many or too large, or one cannot be copied.
    """
    looked = stat_paths(source, found.files, limits)
    if len(looked.bits) > limits.max_files:
        raise ToolError(f"{source} holds more than {limits.max_files:,} files, too many for a copy; {_ADVICE}")
    if sum(looked.sizes.values()) > limits.max_new_bytes:
        raise ToolError(
            f"{source} holds more than {limits.max_new_bytes // 1_000_000:,} MB, too much for a copy; {_ADVICE}"
        )
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
            continue  # the user has just deleted it
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # the path of the worktree may be longer than the user's
                looked.left_out[path] = TOO_LONG
                continue
            raise ToolError(f"{path} could not be copied: {error}") from error
        copied.append(path)
    for path in found.repositories:
        with suppress(OSError):  # git leaves such a folder for a submodule that was not fetched
            make_folders(target / path)
    return copied, looked.left_out | dict.fromkeys(found.repositories, _NOT_COPIED)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file with its mode and time, or a link as a link; no link is followed to it."""
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


_TIMEOUT_S = 600.0
_MANY_FILES = 500
"""Number of files above which they are stored as one pack."""


async def keep_files(
    repository: OwnRepository,
    index: Path,
    paths: Sequence[str],
    limits: KeepLimits,
    *,
    usual: Modes | None = None,
    known: Sequence[str] | None = None,
    is_mostly_kept: bool = False,
) -> Snapshot:
    """Return a snapshot of `paths`, as they are in the work tree now; nothing leads to it yet.

    Args:
        repository: Where to keep it.
        index: What git knows of the files; a new one, or that of the last time, which is quicker.
        paths: Of files and links; those that are not there are not in the snapshot.
        limits: How large a file may be.
        usual: Modes whose usual bits it gets, so that the two compare quickly.
        known: Files that the index lists, if the caller knows.
        is_mostly_kept: True if the repository has most of the content already, so that a pack of it would be in vain.

    Raises:
        ToolError: git could not keep them, as where one changed meanwhile.
        OSError: There is no place for them.
    """
    await to_thread.run_sync(_prepare, repository, index)
    found = await to_thread.run_sync(stat_paths, repository.work_tree, paths, limits)
    if known is None:
        known = paths_in(await repository.run("ls-files", "-z", index=index))
    dropped = [path for path in known if path not in found.bits]
    if dropped:
        await _update(repository, index, ["--force-remove"], dropped, is_packed=False)
    if found.bits:
        await _update(
            repository, index, ["--add", "--remove", "--replace"], list(found.bits), is_packed=not is_mostly_kept
        )
    tree = await repository.write_tree(index)
    bits = {path: mode for path, mode in found.bits.items() if mode is not None}
    modes = modes_of(bits) if usual is None else Modes(*usual.usual).changed(bits)
    return Snapshot("", tree, modes, found.left_out)


async def keep_snapshot(repository: OwnRepository, snapshot: Snapshot, reference: str) -> str:
    """Let a reference lead to a snapshot, so that it stays, and return the id by which `kept` finds it."""
    message = message_of(snapshot.modes, snapshot.left_out, ())
    commit = commit_of(snapshot.tree, None, message)
    id_ = await to_thread.run_sync(repository.add_object, "commit", commit)
    await to_thread.run_sync(repository.point, reference, id_)
    return id_


async def read_snapshot(repository: OwnRepository, id_: str) -> Snapshot:
    """Return a snapshot that was kept for good."""
    try:
        commit = await to_thread.run_sync(repository.read_loose, "commit", id_)
        return snapshot_from(id_, await repository.run("cat-file", "commit", id_) if commit is None else commit)
    except (ToolError, ValueError, KeyError) as error:
        raise SnapshotError(f"the start of a worktree cannot be read: {error}") from error


def _prepare(repository: OwnRepository, index: Path) -> None:
    repository.prepare()
    (repository.folder / "indexes").mkdir(mode=0o700, exist_ok=True)  # where merges and undo work
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)  # left by a killed git


async def _update(
    repository: OwnRepository, index: Path, options: Sequence[str], paths: Sequence[str], *, is_packed: bool
) -> None:
    settings = ["core.bigFileThreshold=0"] if is_packed and len(paths) > _MANY_FILES else []
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    args = ("update-index", "-z", *options, "--stdin")
    await repository.run(*args, index=index, stdin=stdin, settings=settings, timeout_s=_TIMEOUT_S)
