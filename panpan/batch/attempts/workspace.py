"""The files of each attempt: made, compared with their beginning, removed.

The rule: nothing of the project or of the model runs here: no hook, no filter, no text conversion. The user's files,
index, HEAD and branches stay as they are; their repository gets an entry for each worktree. All content that panpan
keeps goes to a repository of its own in the campaign's folder, `state/kept`, where one file of a thousand attempts is
kept once, and from where `pick` takes it when the workspace is gone.

A kill at any moment does no harm: until `attempt.json` names a base, the workspace is removed and made again.
"""

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.batch.attempts.commands import UnfitError
from panpan.batch.attempts.project_copy import copy_project, walked_files
from panpan.batch.definition.written_tasks import file_matcher
from panpan.batch.store.folder import AttemptFolder, write_whole
from panpan.batch.store.records import Changes, FrozenCampaign
from panpan.errors import ConfigError, ToolError
from panpan.file_trees.kept_files import KeepLimits, is_refused_by_git, paths_in, stat_paths
from panpan.file_trees.listed_files import (
    keep_files,
    keep_snapshot,
    read_snapshot,
    split_repositories,
)
from panpan.file_trees.own_repository import OwnRepository, TooMuchError
from panpan.file_trees.snapshot import Difference, Snapshot, differences
from panpan.system.files import folder_tree
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.git.git_places import common_folder
from panpan.system.git.git_places import repository_around as git_folder_around
from panpan.system.git.worktrees import Repository, add_worktree, forget_worktree
from panpan.types.dataclass import dataclass
from panpan.types.events import is_generated

COMPARE_LIMITS = KeepLimits(max_files=200_000)
"""Most that is compared and merged: 20 MB in one file."""
MAX_NEW_FILES = 20_000
MAX_NEW_BYTES = 1_000_000_000
"""Most new files of one attempt, and their bytes; of more, none is kept."""
MAX_PATCH_BYTES = 50_000_000
_MAX_NAMED = 500
"""Files that a result names; it counts the others."""
_PAUSES_S = (0.1, 0.4)
"""Pauses before git is asked again for a worktree, since another machine may have been at the same folder."""


def working_folder(frozen: FrozenCampaign, attempt: AttemptFolder) -> Path:
    """Return the folder in which an attempt works.

    It is the top of the workspace. If the project is a folder within a repository and the workspace a worktree, it is
    the same folder there.
    """
    return attempt.workspace / _inside(frozen)


def top_of_project(frozen: FrozenCampaign) -> Path:
    """Return the folder of the user's that corresponds to the top of a workspace."""
    source = Path(frozen.source)
    git_folder = git_folder_around(source) if is_worktree(frozen) else None
    return source if git_folder is None else git_folder.parent


def linked_places(frozen: FrozenCampaign) -> Mapping[Path, str]:
    """Return the canonical places of the project to which workspaces have links, as far as they exist, with the links.

    Links are relative to the working folder.
    """
    found = {canonical_path(_linked(frozen, path)): path for path in frozen.campaign.workspace.linked}
    return {place: path for place, path in found.items() if place.exists()}


def _linked(frozen: FrozenCampaign, path: str) -> Path:
    return Path(frozen.source) / path


async def make_workspace(frozen: FrozenCampaign, attempt: AttemptFolder) -> str:
    """Make the files of an attempt, in place of what a kill left half-made, and return their base.

    The base is for `AttemptState.base`; where that is written already, the files are the attempt's and stay.

    Raises:
        PanpanError: The project cannot be read, is too large, or git cannot make a worktree.
    """
    state = attempt.state()
    if state is not None and state.base:
        if not attempt.workspace.is_dir():
            raise ToolError(f"the workspace {attempt.workspace} of an attempt that has begun is gone; cancel it")
        return state.base
    if not await to_thread.run_sync(Path(frozen.source).is_dir):
        raise UnfitError(f"the project {frozen.source} is not on this machine; mount its folder at the same place")
    for pause in (*_PAUSES_S, None):
        await remove_workspace(frozen, attempt)
        try:
            left_out = await (_make_worktree if is_worktree(frozen) else copy_project)(frozen, attempt)
            await to_thread.run_sync(_make_links, frozen, attempt)
            break
        except ToolError:
            if pause is None or not is_worktree(frozen):
                raise
            await anyio.sleep(pause)
    return await _keep_beginning(attempt, left_out)


async def changes_of(frozen: FrozenCampaign, attempt: AttemptFolder, base: str, patterns: Sequence[str]) -> Changes:
    """Compare the files of an attempt with their beginning, and write its patch.

    New files count unless git ignores them or programs make them again, such as `__pycache__`; what the model has
    committed counts as what it has not. Only the files are looked at, never the `.git` that the model could write to.

    Args:
        frozen: The campaign.
        attempt: The attempt, whose workspace is there.
        base: Base that `make_workspace` returned.
        patterns: Files that the task is about, for `Changes.outside`.

    Raises:
        PanpanError: The workspace or its beginning cannot be read, or the patch not be written.
    """
    is_inside = file_matcher(patterns)
    await to_thread.run_sync(_require_workspace, attempt)
    repository = OwnRepository(attempt.kept, attempt.workspace)
    before = await read_snapshot(repository, base)
    index = await to_thread.run_sync(_copied_index, attempt)
    listed = await _list_now(repository, frozen, index, before)
    paths = [*listed.known, *listed.new]
    try:
        now = await keep_files(repository, index, paths, COMPARE_LIMITS, usual=before.modes, known=listed.known)
    except OSError as error:
        raise ToolError(f"{attempt.workspace} cannot be compared: {error.strerror}") from error
    end = await keep_snapshot(repository, now, _reference(attempt, "end"))
    write_whole(attempt.patch, await _patch(repository, before, now))
    files = [one for one in await differences(repository, before, now) if not one.is_folder]
    prefix = f"{_inside(frozen)}/".removeprefix("./")
    outside = [one.path for one in files if not (one.path.startswith(prefix) and is_inside(one.path[len(prefix) :]))]
    return _summed(files, outside if patterns else (), {**before.left_out, **now.left_out, **listed.left_out}, end)


async def remove_workspace(frozen: FrozenCampaign, attempt: AttemptFolder) -> None:
    """Remove the files of an attempt, whatever is in them, and the entry of its worktree; both may be gone already.

    Raises:
        PanpanError: Something cannot be removed.
    """
    await to_thread.run_sync(_remove, frozen, attempt)


def _remove(frozen: FrozenCampaign, attempt: AttemptFolder) -> None:
    try:
        for index in (attempt.index, _later_index(attempt)):
            index.unlink(missing_ok=True)
        if attempt.workspace.is_symlink():
            attempt.workspace.unlink()
        elif attempt.workspace.exists():
            folder_tree.remove_tree(attempt.workspace)
        if is_worktree(frozen) and (top_of_project(frozen) / ".git").exists():
            forget_worktree(common_folder(top_of_project(frozen)), canonical_path(attempt.workspace))
    except OSError as error:
        raise ToolError(f"{error.filename or attempt.workspace} could not be removed: {error.strerror}") from error


def is_worktree(frozen: FrozenCampaign) -> bool:
    """True if the files of attempts are git worktrees, and not copies."""
    return frozen.campaign.workspace.isolation == "worktree"


def _inside(frozen: FrozenCampaign) -> str:
    return str(Path(frozen.source).relative_to(top_of_project(frozen)))


def _reference(attempt: AttemptFolder, moment: str) -> str:
    return f"refs/attempts/{attempt.task_id}/{attempt.number}/{moment}"


async def _make_worktree(frozen: FrozenCampaign, attempt: AttemptFolder) -> dict[str, str]:
    top = top_of_project(frozen)
    if not (top / ".git").exists():
        raise ConfigError(
            f"{frozen.source} is in no git repository, so there are no worktrees; "
            'make one with a commit, or set isolation = "copy" in [workspace]'
        )
    if not frozen.commit:
        raise ConfigError("the campaign names no commit for its worktrees; begin it again in a new folder")
    await add_worktree(Repository(top, frozen.commit), attempt.workspace, with_files=True)
    if not working_folder(frozen, attempt).is_dir():
        raise ConfigError(f"the commit {frozen.commit} has no folder {_inside(frozen)}; commit it first")
    return {}


def _make_links(frozen: FrozenCampaign, attempt: AttemptFolder) -> None:
    """Link to the files of the project that attempts share, in place of what git or a copy has there."""
    for path in frozen.campaign.workspace.linked:
        target, place = _linked(frozen, path), working_folder(frozen, attempt) / path
        if not target.exists():
            raise UnfitError(f"workspace.linked: {target} is not on this machine; mount its folder at the same place")
        if not is_below(canonical_path(place.parent), attempt.workspace):  # what is there is no file of the attempt
            raise ConfigError(f"workspace.linked: {path} lies behind a link of the project; name that link")
        try:
            if place.is_dir() and not place.is_symlink():
                folder_tree.remove_tree(place)
            place.unlink(missing_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)
        except OSError as error:
            raise ToolError(f"{place} could not be linked to {target}: {error.strerror}") from error


async def _keep_beginning(attempt: AttemptFolder, left_out: Mapping[str, str]) -> str:
    repository = OwnRepository(attempt.kept, attempt.workspace)
    listed = await to_thread.run_sync(walked_files, attempt.workspace)
    has_others = await to_thread.run_sync((attempt.kept / "refs" / "attempts").is_dir)
    try:
        snapshot = await keep_files(
            repository, attempt.index, listed.files, COMPARE_LIMITS, known=(), is_mostly_kept=has_others
        )
    except OSError as error:
        raise ToolError(f"{attempt.kept} cannot be written: {error.strerror}") from error
    snapshot = replace(snapshot, left_out={**snapshot.left_out, **left_out})
    return await keep_snapshot(repository, snapshot, _reference(attempt, "base"))


def _require_workspace(attempt: AttemptFolder) -> None:
    try:
        status = os.lstat(attempt.workspace)
    except OSError as error:
        raise ToolError(f"the workspace {attempt.workspace} cannot be read: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise ToolError(f"the workspace {attempt.workspace} is no folder any more")


@dataclass(frozen=True, slots=True)
class _Listed:
    known: Sequence[str]
    """Files of the beginning."""
    new: Sequence[str]
    left_out: Mapping[str, str]
    """Reasons why new files do not count."""


def _copied_index(attempt: AttemptFolder) -> Path:
    """Return a copy of the index, which stays as the attempt began, with its time, by which git knows late changes."""
    copy = _later_index(attempt)
    with suppress(FileNotFoundError):
        shutil.copy2(attempt.index, copy)
    return copy


def _later_index(attempt: AttemptFolder) -> Path:
    return attempt.index.with_name("index.now")


async def _list_now(repository: OwnRepository, frozen: FrozenCampaign, index: Path, before: Snapshot) -> _Listed:
    rules = ["--exclude-standard"]
    if (git_folder := git_folder_around(Path(frozen.source))) is not None:
        excludes = common_folder(git_folder.parent) / "info" / "exclude"
        rules += [f"--exclude-from={excludes}"] if excludes.is_file() else []
    try:
        known, others = await _listed_by_git(repository, index, before, "--others", *rules)
    except TooMuchError as error:
        known, _ = await _listed_by_git(repository, index, before)
        return _Listed(known, (), {"new files": f"they are too many: {error}"})
    found = await to_thread.run_sync(split_repositories, repository.work_tree, others)
    left_out = dict.fromkeys(found.repositories, "it is a repository of its own")
    left_out |= {path: "git keeps nothing of this name" for path in found.files if is_refused_by_git(path)}
    new = [path for path in found.files if path not in left_out and not is_generated(path)]
    if why := await to_thread.run_sync(_too_much, repository.work_tree, new):
        return _Listed(known, (), {**left_out, "new files": why})
    return _Listed(known, new, left_out)


async def _listed_by_git(
    repository: OwnRepository, index: Path, before: Snapshot, *options: str
) -> tuple[list[str], list[str]]:
    """Return the files in the index and others; an index that is lost or damaged is made again."""
    listing = ("ls-files", "--cached", *options, "-t", "-z")
    try:
        if not await to_thread.run_sync(index.is_file):
            raise ToolError(f"{index} is gone")
        printed = paths_in(await repository.run(*listing, index=index))
    except TooMuchError:
        raise
    except ToolError:
        await repository.run("read-tree", before.tree, index=index)
        printed = paths_in(await repository.run(*listing, index=index))
    # each with a letter and a space before it
    return [one[2:] for one in printed if one[0] != "?"], [one[2:] for one in printed if one[0] == "?"]


def _too_much(top: Path, new: Sequence[str]) -> str:
    if len(new) > MAX_NEW_FILES:
        return f"they are {len(new):,}, more than {MAX_NEW_FILES:,}; let .gitignore name those that a program makes"
    total = sum(stat_paths(top, new, COMPARE_LIMITS).sizes.values())
    if total > MAX_NEW_BYTES:
        return f"they hold {total // 1_000_000:,} MB, more than {MAX_NEW_BYTES // 1_000_000:,} MB"
    return ""


async def _patch(repository: OwnRepository, before: Snapshot, now: Snapshot) -> bytes:
    if before.tree == now.tree:
        return b""
    options = ("-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")
    try:
        return await repository.run("diff-tree", *options, before.tree, now.tree, max_bytes=MAX_PATCH_BYTES)
    except TooMuchError:
        said = f"The changes are longer than {MAX_PATCH_BYTES // 1_000_000} MB, so there is no patch of them."
        return f"{said} panpan batch pick can bring them into the project.\n".encode()


def _summed(files: Sequence[Difference], outside: Sequence[str], left_out: Mapping[str, str], end: str) -> Changes:
    reasons = sorted(f"{path_text(path)}: {why}" for path, why in left_out.items())
    return Changes(
        files=tuple(path_text(one.path) for one in files[:_MAX_NAMED]),
        more=max(0, len(files) - _MAX_NAMED),
        added=sum(one.added or 0 for one in files),
        removed=sum(one.deleted or 0 for one in files),
        outside=tuple(map(path_text, outside[:_MAX_NAMED])),
        more_outside=max(0, len(outside) - _MAX_NAMED),
        left_out=tuple(reasons[:_MAX_NAMED]),
        snapshot=end,
    )


def path_text(path: str) -> str:
    """Return a path as JSON can hold it."""
    return os.fsencode(path).decode(errors="backslashreplace")
