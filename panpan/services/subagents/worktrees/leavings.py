"""Worktrees that nobody uses any more, and taking one away, whatever is in it."""

import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from panpan.errors import ToolError
from panpan.services.subagents.worktrees.worktree import Worktree, WorktreeRecords
from panpan.system.file_lock import is_held


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
            shutil.rmtree(folder, onerror=_open_and_retry)
    except OSError as error:
        raise ToolError(f"{error.filename or folder} could not be removed: {error.strerror}") from error


def _open_and_retry(do: Callable[..., Any], path: str, error: Any) -> None:
    """Let the user change what is in a folder, then do again what failed there."""
    place = Path(path)
    if isinstance(error[1], FileNotFoundError):
        return
    for folder in (place.parent, place):
        with suppress(OSError):
            if folder.is_dir() and not folder.is_symlink():
                folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
