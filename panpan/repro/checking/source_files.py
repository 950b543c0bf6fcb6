"""The files of a repository as a check runs them: its commit, what has changed since, and what runs get as a link.

The rule: nothing of the repository changes. Runs work in copies of its files as they are. Data that git does not have,
submodules and large files are not copied: each run has links to them, and cannot change them.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath

from anyio import to_thread

from panpan.batch.attempts.project_copy import COPY_LIMITS, walked_files
from panpan.errors import ConfigError, ToolError
from panpan.file_trees.listed_files import WorkTreeFiles, list_files
from panpan.repro.claims import claims_file
from panpan.system.files.canonical import is_below
from panpan.system.files.folder_tree import walk
from panpan.system.git.git import run_git, run_own_git
from panpan.system.git.git_places import repository_around
from panpan.types.dataclass import dataclass

_GIT_S = 60.0
_MAX_LIST_BYTES = 200_000_000
_MAX_LINKED_FILES = 100_000
"""Files of a data folder that are compared with what git has; of more, the folder becomes a link."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """A repository, or a folder without one."""

    folder: Path
    """Canonical."""
    commit: str
    """Empty if it has none."""
    is_changed: bool
    """True if files differ from the commit, or there is none."""
    identity: str
    """Digest that differs when the files do."""
    linked: Sequence[str]
    """Files and folders that runs get as links, relative to the folder."""
    left_out: Sequence[str]
    """Files and folders that runs do not get."""


async def look_at_source(folder: Path, results: Path, data: Sequence[str]) -> SourceFiles:
    """Return the files of a repository as they are now.

    Args:
        folder: The repository, or a folder of it; canonical.
        results: Folder of the results, which are no part of it; canonical.
        data: Files and folders of data, relative to the folder.

    Raises:
        ConfigError: The files cannot be listed.
    """
    own = [str(results.relative_to(folder))] if is_below(results, folder) else []
    try:
        listed = await list_files(folder) if repository_around(folder) is not None else WorkTreeFiles(())
        is_repository = bool(listed.files)  # else it is in none, or in one that ignores it
        if not is_repository:
            listed = await to_thread.run_sync(walked_files, folder, _is_below_any(own))
        commit, changed = await _commit_of(folder, own) if is_repository else ("", True)
    except ToolError as error:
        raise ConfigError(f"the files of {folder} cannot be listed: {error}") from error
    files = [path for path in listed.files if not _is_below_any(own)(path)]
    shared = await to_thread.run_sync(lambda: tuple(_to_link(folder, data, files if is_repository else ())))
    identity = commit if commit and not changed else await to_thread.run_sync(_digest, folder, files, shared)
    repositories = [path.rstrip("/") for path in listed.repositories if _is_filled(folder / path)]
    if repositories:  # runs read their files, and no commit of this repository says what they are
        inner = [f"{one}/{name}" for one in repositories for name in _names_below(folder / one)]
        identity = f"{identity}-{await to_thread.run_sync(_digest, folder, inner, ())}"
    large = await to_thread.run_sync(lambda: list(_too_large(folder, files)))
    return SourceFiles(folder, commit, changed, identity, _outermost([*shared, *repositories, *large]), tuple(own))


async def _commit_of(folder: Path, own: Sequence[str]) -> tuple[str, bool]:
    """Return the commit, and True if files differ from it; claims.toml and results do not count."""
    head = await run_git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], cwd=folder, timeout_s=_GIT_S)
    if head.exit_code != 0:
        return "", True
    but_for = [f":(exclude,literal){path}" for path in (claims_file.NAME, *own)]
    status = await run_git(["status", "--porcelain", "-z", "--", ".", *but_for], cwd=folder, timeout_s=_GIT_S)
    if status.exit_code != 0 or status.timed_out:
        raise ToolError("git status failed")
    return head.stdout.decode("ascii").strip(), bool(status.stdout) or await _may_hide_changes(folder)


async def _may_hide_changes(folder: Path) -> bool:
    """True if `git status` is silent about files that may differ from the commit.

    These are files that git was told to take for unchanged, and submodules.
    """
    args = ["ls-files", "-v", "-s", "-z"]
    listed = await run_own_git(args, cwd=folder, timeout_s=_GIT_S, max_bytes=_MAX_LIST_BYTES)
    if listed.exit_code != 0 or listed.timed_out:
        raise ToolError("git ls-files failed")
    is_silent, submodules = await to_thread.run_sync(_not_looked_at, folder, listed.stdout)
    if is_silent:
        return True
    for place, commit in submodules:
        if await _commit_of(place, ()) != (commit, False):
            return True
    return False


def _not_looked_at(folder: Path, listing: bytes) -> tuple[bool, Sequence[tuple[Path, str]]]:
    """Return True if git takes a file that is there for unchanged, and the submodules with the commits they had."""
    is_silent, submodules = False, []
    for entry in filter(None, listing.split(b"\0")):
        head, _, name = entry.partition(b"\t")
        tag, mode, commit, *_ = head.decode("ascii").split()
        place = folder / os.fsdecode(name)
        is_silent |= (tag.islower() or tag == "S") and os.path.lexists(place)
        if mode == "160000" and _is_filled(place):
            submodules.append((place, commit))
    return is_silent, submodules


def _is_below_any(places: Sequence[str]) -> Callable[[str], bool]:
    return lambda path: any(f"{path}/".startswith(f"{place}/") for place in places)


def _to_link(folder: Path, data: Sequence[str], files: Sequence[str]) -> Iterator[str]:
    """Yield the data that is there and that a copy of the files would not have whole."""
    known = set(files)
    for path in data:
        place = folder / path
        if (link := _first_link(folder, path)) is not None:
            yield link
        elif place.is_dir():
            if not all(f"{path}/{name}" in known for name in _names_in(place)):
                yield path
        elif place.exists() and path not in known:
            yield path


def _first_link(folder: Path, path: str) -> str | None:
    """Return the first link on a path; None if there is none, or it leads nowhere."""
    above = [parent for parent in (*reversed(PurePosixPath(path).parents), PurePosixPath(path)) if parent.name]
    link = next((str(one) for one in above if (folder / one).is_symlink()), None)
    return link if link is not None and (folder / path).exists() else None


def _is_filled(folder: Path) -> bool:
    """True if a folder has files, as that of a submodule that was fetched."""
    with suppress(OSError):
        return any(folder.iterdir())
    return False


def _too_large(folder: Path, files: Sequence[str]) -> Iterator[str]:
    """Yield the files that are too large for a copy."""
    for path in files:
        with suppress(OSError):
            status = os.lstat(folder / path)
            if stat.S_ISREG(status.st_mode) and status.st_size > COPY_LIMITS.max_file_bytes:
                yield path


def _names_in(folder: Path) -> Iterator[str]:
    """Yield the files below a folder; at last one that no repository has if there are too many to look at."""
    count = 0
    for here, _, names in walk(folder):
        inside = here[len(str(folder)) + 1 :]
        for name in names:
            count += 1
            if count > _MAX_LINKED_FILES:
                yield ".git"
                return
            yield f"{inside}/{name}" if inside else name


def _outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """Return paths without those that lie in others."""
    ordered = sorted(dict.fromkeys(paths), key=len)
    return tuple(one for number, one in enumerate(ordered) if not _is_below_any(ordered[:number])(one))


def _names_below(folder: Path) -> Iterator[str]:
    """Yield the files of a repository within, without those of git."""
    for here, folders, names in walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (os.path.relpath(f"{here}/{name}", folder) for name in names if name != ".git")


def _digest(folder: Path, files: Sequence[str], data: Sequence[str]) -> str:
    """Return a digest of the files by their sizes and times; data has its own digests."""
    digest = sha256()
    is_data = _is_below_any(data)
    for path in sorted(files):
        if path == claims_file.NAME or is_data(path):
            continue
        try:
            status = os.lstat(folder / path)
        except OSError:
            continue
        facts = (path, status.st_mode, status.st_size, status.st_mtime_ns)
        digest.update(repr(facts).encode(errors="surrogateescape"))
    return digest.hexdigest()
