"""Copies of the project for attempts, each a repository of its own with one commit and no history.

The rule: the campaign's own files are not copied, so an attempt sees nothing of the others, and no link is followed.
"""

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from anyio import to_thread

from panpan.batch.store.folder import OWN_FILES, AttemptFolder
from panpan.batch.store.records import FrozenCampaign
from panpan.errors import ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.listed_files import WorkTreeFiles, copy_listed, list_files
from panpan.system.files.canonical import is_below
from panpan.system.files.folder_tree import walk
from panpan.system.git.git import git_environment, git_program
from panpan.system.git.git_places import repository_around
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line

COPY_LIMITS = KeepLimits(max_file_bytes=200_000_000, max_files=200_000)
"""Most that a copy holds: 200 MB in one file, 20 GB in all."""
_GIT_S = 900.0


async def copy_project(frozen: FrozenCampaign, attempt: AttemptFolder) -> dict[str, str]:
    """Copy the project as it is into the workspace of an attempt, and return reasons why files are missing there.

    Files that git ignores are not copied, nor the campaign's. The workspace must not exist.

    Raises:
        PanpanError: There is too much, or something cannot be read or written.
    """
    source = Path(frozen.source)
    own = _unwanted(frozen, attempt, source)
    found = await list_files(source) if repository_around(source) is not None else WorkTreeFiles(())
    if not found.files:  # it is in no repository, or in one that ignores it
        found = await to_thread.run_sync(walked_files, source, own)
    kept = [path for path in found.files if not own(path)]
    repositories = [path for path in found.repositories if not own(path)]
    attempt.workspace.mkdir(parents=True)
    files = WorkTreeFiles(kept, repositories)
    _, left_out = await to_thread.run_sync(copy_listed, source, attempt.workspace, files, COPY_LIMITS)
    await _begin_repository(attempt.workspace)
    return {path: f"it is not in the workspace: {why}" for path, why in left_out.items()}


def _unwanted(frozen: FrozenCampaign, attempt: AttemptFolder, source: Path) -> Callable[[str], bool]:
    """Return a function that tells if a path of the project is not copied."""
    is_own, workspace = campaigns_own(frozen, attempt, source), frozen.campaign.workspace
    places = [PurePosixPath(path) for path in (*workspace.linked, *workspace.left_out)]
    return lambda path: is_own(path) or any(PurePosixPath(path).is_relative_to(place) for place in places)


def campaigns_own(frozen: FrozenCampaign, attempt: AttemptFolder, root: Path) -> Callable[[str], bool]:
    """Return a function that tells if a path below a folder belongs to the campaign and not to the project."""
    campaign = attempt.campaign
    if not is_below(campaign, root):
        return lambda _: False
    inside = campaign.relative_to(root)
    places = [str(inside)]
    if is_below(Path(frozen.source), campaign):  # the project is the campaign's folder, or a folder in it
        places = [str(inside / name) for name in OWN_FILES]
    return lambda path: any(path.rstrip("/") == place or path.startswith(f"{place}/") for place in places)


def walked_files(top: Path, is_left_out: Callable[[str], bool] = lambda _: False) -> WorkTreeFiles:
    """Return all files of a folder, without those of git and those left out."""
    found: list[str] = []
    for here, folders, names in walk(top):
        prefix = here[len(str(top)) + 1 :]
        prefix += "/" if prefix else ""
        folders[:] = [name for name in folders if name != ".git" and not is_left_out(prefix + name)]
        found += [prefix + name for name in names if name != ".git" and not is_left_out(prefix + name)]
        if len(found) > COPY_LIMITS.max_files:
            raise ToolError(f"{top} holds more than {COPY_LIMITS.max_files:,} files, too many for an attempt")
    return WorkTreeFiles(found)


_AUTHOR = ("-c", "user.name=panpan", "-c", "user.email=panpan@localhost")


async def _begin_repository(top: Path) -> None:
    """Make a copy a repository with one commit, in which no configuration and no template of anybody counts."""
    env = {**git_environment(), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    program = git_program(top)
    for args in (
        ("init", "--quiet", "--template=", "--initial-branch=main"),
        ("add", "--all", "--force"),
        (*_AUTHOR, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", "base"),
    ):
        done = await capture([program, *args], cwd=top, env=env, timeout_s=_GIT_S)
        if done.timed_out or done.exit_code != 0:
            said = clean_line(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])[:200]
            raise ToolError(f"git could not make {top} a repository: {said or 'it took too long'}")
