"""What becomes of worktrees whose subagents have ended: shown, merged or discarded, for the tool MergeWorktree."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from panpan.capabilities.subagents.worktrees.agents_worktrees import WorktreeMerge
from panpan.capabilities.subagents.worktrees.merging import MergePlan, Merging
from panpan.capabilities.subagents.worktrees.worktree import Worktree
from panpan.capabilities.subagents.worktrees.worktrees import Worktrees
from panpan.errors import ToolError
from panpan.file_trees.snapshot import diff_text

_TOLD = 5


class WorktreeMerges:
    """Merges worktrees, or throws them away; `AgentWorktrees` for the tools.

    Args:
        worktrees: All that there are.
        is_busy: Returns whether a subagent is at work, so that its worktree must be let alone.
    """

    def __init__(self, worktrees: Worktrees, is_busy: Callable[[str], bool] = lambda _: False) -> None:
        self._worktrees = worktrees
        self._is_busy = is_busy

    def folder_of(self, agent_id: str) -> Path:
        """Return the worktree of a subagent.

        Raises:
            ToolError: It has none.
        """
        return self._required(agent_id).top

    def changed_places(self, agent_id: str) -> Sequence[Path]:
        """Return the files of the project that a merge would change, as far as was known when it was last looked at.

        Raises:
            ToolError: The subagent has no worktree.
        """
        worktree = self._required(agent_id)
        return [worktree.project_top / path for path in worktree.changed]

    async def diff(self, agent_id: str) -> str:
        """Return what the subagent changed, as a unified diff, not cleaned for a terminal; of a very long one, a note.

        Raises:
            PanpanError: It has no worktree, or that cannot be told.
        """
        worktree = self._required(agent_id)
        async with self._worktrees.lock:
            found = await self._worktrees.compare(worktree)
            return await diff_text(self._worktrees.repository(worktree.top), found.base.tree, found.now.tree)

    async def plan_merge(self, agent_id: str) -> WorktreeMerge:
        """Return what merging would do now.

        Raises:
            PanpanError: The subagent has no worktree, is at work, or it cannot be told.
        """
        async with self._worktrees.lock:
            return (await self._plan(self._idle(agent_id))).told

    async def merge(self, agent_id: str, *, only: str | None = None) -> WorktreeMerge:
        """Bring the changes into the project's files, all but those with conflicts, and remove what is merged whole.

        Args:
            agent_id: The subagent.
            only: Id of the plan that may be carried out; None: whatever is right now, of the files that were known.

        Raises:
            PanpanError: As for `plan_merge`, or something else would be done now, or a file cannot be written: all
                files are as they were then.
        """
        async with self._worktrees.lock:
            worktree = self._idle(agent_id)
            plan = await self._plan(worktree)
            if only is not None and plan.told.id != only:
                raise ToolError(
                    "files changed while the user was asked, so that this merge would now do something else than he "
                    "was shown and allowed; no file was changed. Make the call again"
                )
            with anyio.CancelScope(shield=True):  # a part of it would be neither state
                await self._merging(worktree).carry_out(plan, worktree)
                if plan.told.is_whole:
                    await self._worktrees.clear(worktree)
            return plan.told

    async def discard(self, agent_id: str) -> None:
        """Remove a worktree with all that was changed in it.

        Raises:
            PanpanError: The subagent has none, is at work, or it cannot be removed.
        """
        await self._worktrees.remove(self._idle(agent_id), with_changes=True)

    def _required(self, agent_id: str) -> Worktree:
        worktree = self._worktrees.find(agent_id)
        if worktree is None:
            raise ToolError(f"no subagent with the id {agent_id!r} has a worktree; it may have been removed")
        return worktree

    def _idle(self, agent_id: str) -> Worktree:
        if self._is_busy(agent_id):
            raise ToolError(f"the subagent {agent_id} is still at work in its worktree; wait until it has ended")
        return self._required(agent_id)

    async def _plan(self, worktree: Worktree) -> MergePlan:
        found = await self._worktrees.compare(worktree)
        unknown = sorted({one.path for one in found.files} - set(worktree.changed))
        if unknown:  # nobody was asked about these
            named = ", ".join(unknown[:_TOLD])
            raise ToolError(f"more files of the worktree have changed since it was last looked at: {named}; try again")
        try:
            return await self._merging(worktree).plan(found.base, found.now, found.left, worktree)
        except OSError as error:
            raise ToolError(f"what a merge would do cannot be worked out: {error.strerror}") from error

    def _merging(self, worktree: Worktree) -> Merging:
        index = worktree.top.with_name(f"{worktree.top.name}.merge-index")
        return Merging(self._worktrees.repository(worktree.project_top), index, self._worktrees.limits)
