"""Merges of subagents' worktrees into the project, and the worktrees shown or discarded."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from panpan.capabilities.subagents.worktrees.merge_worktree import WorktreeMerge
from panpan.capabilities.subagents.worktrees.worktree import Worktree, display_path
from panpan.capabilities.subagents.worktrees.worktrees import Worktrees
from panpan.editing.tree_diffs import file_diffs
from panpan.errors import ToolError
from panpan.file_trees.merging import MergePlan, Merging
from panpan.file_trees.snapshot import diff_text

_TOLD = 5


class WorktreeMerges:
    """Shows, merges or discards the worktrees of subagents that have ended."""

    def __init__(self, worktrees: Worktrees, is_busy: Callable[[str], bool] = lambda _: False) -> None:
        self._worktrees = worktrees
        self._is_busy = is_busy

    def folder_of(self, agent_id: str) -> Path:
        return self._required(agent_id).top

    def changed_places(self, agent_id: str) -> Sequence[Path]:
        """Return the files of the project that a merge would change, as last known."""
        worktree = self._required(agent_id)
        return [worktree.project_top / path for path in worktree.changed]

    async def diff(self, agent_id: str) -> str:
        """Return the subagent's changes as a unified diff, not cleaned for a terminal; of a very long one, a note."""
        worktree = self._required(agent_id)
        async with self._worktrees.lock:
            found = await self._worktrees.compare(worktree)
            return await diff_text(self._worktrees.repository(worktree.top), found.base.tree, found.now.tree)

    async def plan_merge(self, agent_id: str) -> WorktreeMerge:
        """Return the effect that merging would have now."""
        async with self._worktrees.lock:
            return (await self._plan(self._idle(agent_id)))[1]

    async def merge(self, agent_id: str, *, only: str | None = None) -> WorktreeMerge:
        """Bring the changes into the project's files, all but those with conflicts, and remove what is merged whole.

        Raises:
            PanpanError: As for `plan_merge`, or something else would be done now, or a file cannot be written: all
                files are as they were then.
        """
        async with self._worktrees.lock:
            worktree = self._idle(agent_id)
            plan, report = await self._plan(worktree)
            if only is not None and report.id != only:
                raise ToolError(
                    "files changed while the user was asked, so this merge would differ from the one "
                    "that was allowed; no file was changed",
                    advice="make the call again",
                )
            with anyio.CancelScope(shield=True):  # half of it would be neither state
                await self._merging(worktree).apply(plan, lambda folder: os.path.lexists(f"{worktree.top}/{folder}"))
                if report.is_whole:
                    await self._worktrees.clear(worktree)
            return report

    async def discard(self, agent_id: str) -> None:
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

    async def _plan(self, worktree: Worktree) -> tuple[MergePlan, WorktreeMerge]:
        found = await self._worktrees.compare(worktree)
        unknown = sorted({one.path for one in found.files} - set(worktree.changed))
        if unknown:  # the user was not asked about these
            named = ", ".join(unknown[:_TOLD])
            raise ToolError(f"more files of the worktree have changed since it was last looked at: {named}; try again")
        plan = await self._merging(worktree).plan(found.base, found.now)
        repository = self._worktrees.repository(worktree.project_top)
        diffs = await file_diffs(repository, plan.changes, lambda path: display_path(path, worktree))
        conflicts = {display_path(path, worktree): why for path, why in plan.conflicts.items()}
        merged = [display_path(path, worktree) for path in plan.merged]
        return plan, WorktreeMerge(plan.id, diffs, conflicts, merged, found.left)

    def _merging(self, worktree: Worktree) -> Merging:
        index = worktree.top.with_name(f"{worktree.top.name}.merge-index")
        return Merging(self._worktrees.repository(worktree.project_top), index, self._worktrees.limits)
