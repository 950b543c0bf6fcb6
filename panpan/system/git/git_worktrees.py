"""Worktrees of the user's repository: the one thing of panpan's that git keeps there.

The rule: an entry in the repository's `worktrees` folder is made and removed again, under a name of its own. Its index,
HEAD, branches and objects stay as they are, other entries, too, and nothing runs that a configuration names. No file is
checked out, for that would run filters; whoever makes a worktree fills it himself.
"""

import os
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import remove_tree
from panpan.system.git.git import run_git, run_own_git
from panpan.system.processes.process import Captured
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

_TIMEOUT_S = 60.0
_MAX_REASON_CHARS = 200


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository around a folder."""

    top: Path
    """The folder that its files lie in, canonical."""
    head: str
    """Id of the commit that HEAD leads to."""


async def repository_around(folder: Path) -> Repository:
    """Return the repository that the canonical `folder` lies in.

    Raises:
        ToolError: There is none with files and a commit, or git cannot be asked.
    """
    found = await run_git(["rev-parse", "--show-toplevel"], cwd=folder, timeout_s=_TIMEOUT_S)
    if found.exit_code != 0:
        raise ToolError(f"{folder} is in no git repository; without one there are no worktrees")
    top = canonical_path(Path(os.fsdecode(found.stdout.removesuffix(b"\n"))))
    if not is_below(folder, top):
        raise ToolError(f"the repository of {folder} says that its files lie in {top}; no worktree was made")
    head = await run_git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], cwd=folder, timeout_s=_TIMEOUT_S)
    if head.exit_code != 0:
        raise ToolError(f"the repository {top} has no commit yet; make the first one, then there can be worktrees")
    return Repository(top, head.stdout.decode("ascii").strip())


async def add_worktree(repository: Repository, path: Path) -> None:
    """Make a worktree without files, its HEAD detached at the commit of `repository`.

    Args:
        repository: The user's.
        path: Where; must not exist. The repository's entry gets the same name.

    Raises:
        ToolError: git could not; what it had made by then is left.
    """
    adding = ["worktree", "add", "--detach", "--no-checkout", str(path), repository.head]
    added = await run_own_git(adding, cwd=repository.top, timeout_s=_TIMEOUT_S)
    if added.exit_code != 0:
        raise ToolError(f"git could not make a worktree: {_reason(added)}")
    # Its index, so that `git status` tells there what it tells in the user's folder.
    read = await run_own_git(["read-tree", repository.head], cwd=path, timeout_s=_TIMEOUT_S)
    if read.exit_code != 0:
        raise ToolError(f"git could not fill the index of a worktree: {_reason(read)}")


async def forget_worktree(top: Path, path: Path) -> None:
    """Remove the repository's entry of a worktree whose folder is gone; without effect where there is none.

    Args:
        top: The folder that the repository's files lie in.
        path: Where the worktree was.

    Raises:
        ToolError: git could not.
    """
    listed = await run_own_git(["worktree", "list", "--porcelain"], cwd=top, timeout_s=_TIMEOUT_S)
    if listed.exit_code != 0:
        raise ToolError(f"git could not list the worktrees of {top}: {_reason(listed)}")
    if b"worktree " + os.fsencode(path) not in listed.stdout.split(b"\n"):
        await _remove_half_entry(top, path.name)
        return
    # Twice: also where somebody locked it.
    removed = await run_own_git(["worktree", "remove", "--force", "--force", str(path)], cwd=top, timeout_s=_TIMEOUT_S)
    if removed.exit_code != 0:
        raise ToolError(f"git could not forget the worktree {path}: {_reason(removed)}")


async def _remove_half_entry(top: Path, name: str) -> None:
    """Remove an entry that leads nowhere and so is not listed: a git that was interrupted may write into it still."""
    found = await run_git(["rev-parse", "--git-common-dir"], cwd=top, timeout_s=_TIMEOUT_S)
    if found.exit_code == 0:
        entry = canonical_path(top / os.fsdecode(found.stdout.removesuffix(b"\n"))) / "worktrees" / name
        if entry.is_dir() and not entry.is_symlink() and not (entry / "gitdir").exists():
            with suppress(OSError):
                await to_thread.run_sync(remove_tree, entry)


def _reason(done: Captured) -> str:
    if done.timed_out:
        return f"it took longer than {_TIMEOUT_S:g} s"
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return clean_line(lines[-1] if lines else f"exit code {done.exit_code}")[:_MAX_REASON_CHARS]
