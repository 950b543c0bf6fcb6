"""A subagent's worktree: made where it begins, and where it ends removed, or named together with what was changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.errors import PanpanError
from panpan.services.subagents.agent_log import AgentRecord

if TYPE_CHECKING:
    from panpan.services.subagents.worktrees.worktrees import Worktrees

MAX_FILES = 30
"""Changed files that a result names."""


async def worktree_for(worktrees: "Worktrees", record: AgentRecord) -> Path:
    """Return where a subagent works that has a worktree: a new one, or the one that it had before.

    Raises:
        PanpanError: It cannot be made.
    """
    worktree = worktrees.find(record.id)
    return (worktree or await worktrees.make(record.id)).path


async def end_worktree(worktrees: "Worktrees", record: AgentRecord) -> Sequence[str]:
    """Remove the worktree of a subagent if nothing was changed in it, and return what its parent should know of it."""
    worktree = worktrees.find(record.id)
    if worktree is None:
        return ()
    try:
        if await worktrees.remove(worktree):
            return tuple(filter(None, ("It changed nothing in its worktree, which is removed.", worktree.note)))
        files = await worktrees.changes(worktree)
    except PanpanError as error:
        return (f"Its worktree {worktree.path} is kept; what was changed in it cannot be told: {error}",)
    lines = [
        f"{file.path} ({file.kind}, +{file.added or 0} \N{MINUS SIGN}{file.deleted or 0})" for file in files[:MAX_FILES]
    ]
    if len(files) > MAX_FILES:
        lines.append(f"… and {len(files) - MAX_FILES:,} more")
    changed = "\n".join(lines) or "no file, but something that is not merged, such as a repository of its own"
    told = (
        f"It changed files in its worktree {worktree.path}, and nothing of that is in the project yet. MergeWorktree "
        f"with its id shows, merges or discards it:\n{changed}"
    )
    return tuple(filter(None, (told, worktree.note)))
