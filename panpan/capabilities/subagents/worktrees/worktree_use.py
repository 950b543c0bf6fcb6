"""A subagent's worktree: made where it begins, and where it ends removed, or named together with what was changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.errors import PanpanError
from panpan.session.agent_log import AgentRecord
from panpan.types.dataclass import dataclass
from panpan.types.file_change import FileChange

if TYPE_CHECKING:
    from panpan.capabilities.subagents.worktrees.worktrees import Worktrees

MAX_FILES = 30
"""Changed files that a result names."""
_MAX_SHOWN = 3
"""Of them, those that people are shown."""


@dataclass(frozen=True, slots=True)
class WorktreeEnd:
    """What became of a worktree as its subagent ended."""

    notes: Sequence[str] = ()
    """What whoever started the subagent should know, one sentence each."""
    summary: str = ""
    """What waits in it, in a few words for people; empty where nothing does."""


async def worktree_for(worktrees: "Worktrees", record: AgentRecord) -> tuple[Path, bool]:
    """Return where a subagent works that has a worktree, and whether that is new: else it is the one that it had.

    Raises:
        PanpanError: It cannot be made.
    """
    worktree = worktrees.find(record.id)
    return (worktree or await worktrees.make(record.id)).path, worktree is None


async def end_worktree(worktrees: "Worktrees", record: AgentRecord) -> WorktreeEnd:
    """Remove the worktree of a subagent if nothing was changed in it, and return what became of it."""
    worktree = worktrees.find(record.id)
    if worktree is None:
        return WorktreeEnd()
    try:
        if await worktrees.remove(worktree):
            told = "It changed nothing in its worktree, which is removed."
            return WorktreeEnd(tuple(filter(None, (told, worktree.note))))
        files = await worktrees.changes(worktree)
    except PanpanError as error:
        told = f"Its worktree {worktree.path} is kept; what was changed in it cannot be told: {error}"
        return WorktreeEnd((told,), "its worktree is kept, not merged")
    lines = [f"{file.path} ({file.kind}, {_counts(file)})" for file in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        lines.append(f"… and {len(files) - MAX_FILES:,} more")
    changed = "\n".join(lines) or "no file, but something that is not merged, such as a repository of its own"
    told = (
        f"It changed files in its worktree {worktree.path}, and nothing of that is in the project yet. MergeWorktree "
        f"with its id shows, merges or discards it:\n{changed}"
    )
    return WorktreeEnd(tuple(filter(None, (told, worktree.note))), f"{_shown(files)} in its worktree, not merged")


def _shown(files: Sequence[FileChange]) -> str:
    """Return the first files with their counts, for people."""
    text = ", ".join(f"{file.path} {_counts(file)}" for file in files[:_MAX_SHOWN]) or "a change"
    return f"{text} and {len(files) - _MAX_SHOWN:,} more" if len(files) > _MAX_SHOWN else text


def _counts(file: FileChange) -> str:
    return f"+{file.added or 0} \N{MINUS SIGN}{file.deleted or 0}"
