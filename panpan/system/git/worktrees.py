"""Worktrees of the user's repository: the one thing of panpan's that git keeps there.

The rule: an entry in the repository's `worktrees` folder is made and removed again, under a name of its own. Its index,
HEAD, branches and objects stay as they are, other entries, too. Files are checked out without filters, or not at all;
then whoever makes a worktree fills it.
"""

import os
from contextlib import suppress
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.folder_tree import remove_tree
from panpan.system.files.read_file import read_regular_file
from panpan.system.git.git import run_git, run_own_git
from panpan.system.processes.process import Captured
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

_TREES_S = 60.0
"""Time limit of each question about worktrees."""
_CHECKOUT_S = 900.0
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
    found = await run_git(["rev-parse", "--show-toplevel"], cwd=folder, timeout_s=_TREES_S)
    if found.exit_code != 0:
        raise ToolError(f"{folder} is in no git repository; without one there are no worktrees")
    top = canonical_path(Path(os.fsdecode(found.stdout.removesuffix(b"\n"))))
    if not is_below(folder, top):
        raise ToolError(f"the repository of {folder} says that its files are in {top}; no worktree was made")
    head = await run_git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], cwd=folder, timeout_s=_TREES_S)
    if head.exit_code != 0:
        raise ToolError(f"the repository {top} has no commit yet; make the first one, then there can be worktrees")
    return Repository(top, head.stdout.decode("ascii").strip())


async def add_worktree(repository: Repository, path: Path, *, with_files: bool = False) -> None:
    """Make a worktree at `path`, its HEAD detached at the commit of `repository`.

    The path must not exist; the repository's entry gets the same name. Files, if wanted, are those of the commit, with
    the ends of lines that the repository names, and as no filter changes them: of a file in LFS, the pointer.

    Raises:
        ToolError: git could not; what it had made by then is left.
    """
    adding = ["worktree", "add", "--detach", "--no-checkout", str(path), repository.head]
    added = await run_own_git(adding, cwd=repository.top, timeout_s=_TREES_S)
    if added.exit_code != 0:
        raise ToolError(f"git could not make a worktree: {_reason(added)}")
    # An index of its own, so that `git status` shows the same there as in the user's folder.
    reading = ["read-tree", *(("--reset", "-u") if with_files else ()), repository.head]
    read = await run_own_git(reading, cwd=path, timeout_s=_CHECKOUT_S if with_files else _TREES_S)
    if read.exit_code != 0:
        raise ToolError(f"git could not fill a worktree: {_reason(read)}")


def forget_worktree(common: Path, path: Path) -> None:
    """Remove the entry of a worktree whose folder is gone; without effect where there is none.

    Git would look at all worktrees, which may be thousands.

    Args:
        common: The folder that all worktrees of the repository share.
        path: Canonical path that the worktree had.

    Raises:
        OSError: It cannot be removed.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(common / "worktrees"):  # noqa: PTH208
            number = name.removeprefix(path.name)  # git adds one to a name that is taken
            if not name.startswith(path.name) or (number and not number.isdigit()):
                continue
            entry = common / "worktrees" / name
            named = _worktree_of(entry)
            is_half = named is None and not number  # a git that was interrupted may write into it still
            if (is_half or named == path / ".git") and not entry.is_symlink():
                remove_tree(entry)


def _worktree_of(entry: Path) -> Path | None:
    """Return the `.git` that an entry says it is for; None if it says nothing."""
    with suppress(ToolError):
        named = os.fsdecode(read_regular_file(entry / "gitdir", max_bytes=10_000)).strip()
        return canonical_path(entry / named) if named else None
    return None


def _reason(done: Captured) -> str:
    if done.timed_out:
        return "it took too long"
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return clean_line(lines[-1] if lines else f"exit code {done.exit_code}")[:_MAX_REASON_CHARS]
