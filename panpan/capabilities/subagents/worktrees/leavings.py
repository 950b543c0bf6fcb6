"""Worktrees that nobody uses any more, and taking one away, whatever is in it."""

from collections.abc import Sequence
from pathlib import Path

from panpan.capabilities.subagents.worktrees.worktree import Worktree, WorktreeRecords
from panpan.errors import ToolError
from panpan.system.files import folder_tree
from panpan.system.files.file_lock import is_held


def left_worktrees(folder: Path) -> Sequence[Worktree]:
    """Return the worktrees of a project that no panpan uses: of sessions that ended, or were killed.

    Args:
        folder: Where they lie.
    """
    return [worktree for worktree in WorktreeRecords(folder).all() if not is_held(worktree.top)]


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, also where its permission bits are in the way; a link is not followed.

    Raises:
        ToolError: Something of it cannot be removed.
    """
    try:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            folder_tree.remove_tree(folder)
    except OSError as error:
        raise ToolError(f"{error.filename or folder} could not be removed: {error.strerror}") from error
