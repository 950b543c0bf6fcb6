"""What MergeWorktree needs of whoever keeps the worktrees of subagents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from panpan.types.dataclass import dataclass
from panpan.types.display import FileDiff


@dataclass(frozen=True, slots=True)
class WorktreeMerge:
    """What merging does to the project's files, or has done."""

    id: str
    """Another one wherever something else would be done."""
    diffs: Sequence[FileDiff]
    """What becomes of each file; without lines where its content is no text."""
    conflicts: Mapping[str, str]
    """Why files stay as they are, by path; the worktree has the agent's."""
    merged: Sequence[str]
    """Files in which changes of both are joined."""
    left: Mapping[str, str]
    """Why something in the worktree cannot be merged, by path."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the agent's is left that only the worktree has."""
        return not self.conflicts and not self.left


class AgentWorktrees(Protocol):
    """Keeps the worktrees of subagents."""

    def folder_of(self, agent_id: str) -> Path:
        """Return the worktree of a subagent.

        Raises:
            ToolError: It has none.
        """
        ...

    def changed_places(self, agent_id: str) -> Sequence[Path]:
        """Return the files of the project that a merge would change, as far as was known when it was last looked at.

        Raises:
            ToolError: The subagent has no worktree.
        """
        ...

    async def diff(self, agent_id: str) -> str:
        """Return what the subagent changed, as a unified diff, not cleaned for a terminal; of a very long one, a note.

        Raises:
            PanpanError: It has no worktree, or that cannot be told.
        """
        ...

    async def plan_merge(self, agent_id: str) -> WorktreeMerge:
        """Return what merging would do now.

        Raises:
            PanpanError: The subagent has no worktree, is at work, or it cannot be told.
        """
        ...

    async def merge(self, agent_id: str, *, only: str | None = None) -> WorktreeMerge:
        """Bring the changes into the project's files, all but those with conflicts, and remove what is merged whole.

        Args:
            agent_id: The subagent.
            only: Id of the plan that may be carried out; None: whatever is right now, of the places that were known.

        Raises:
            PanpanError: As for `plan_merge`, or something else would be done now, or a file cannot be written: all
                files are as they were then.
        """
        ...

    async def discard(self, agent_id: str) -> None:
        """Remove a worktree with all that was changed in it.

        Raises:
            PanpanError: The subagent has none, is at work, or it cannot be removed.
        """
        ...
