"""The worktrees of one session: made when the first is needed, tidied at its start, and given back at its end."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from anyio import to_thread

from panpan.capabilities.subagents.place import Place
from panpan.config.locations import snapshots_folder
from panpan.session.context import SessionContext

if TYPE_CHECKING:
    from panpan.capabilities.subagents.worktrees.worktree_merges import WorktreeMerges
    from panpan.capabilities.subagents.worktrees.worktrees import Worktrees


class SessionWorktrees:
    """Makes the copies of the project that subagents work in.

    Args:
        session: The session.
        place: Where its subagents keep their logs.
    """

    def __init__(self, session: SessionContext, place: Place) -> None:
        self._session = session
        self._place = place

    @cached_property
    def worktrees(self) -> "Worktrees":
        """Makes and removes worktrees."""
        from panpan.capabilities.subagents.worktrees.worktrees import Worktrees  # most sessions make none

        setup = self._session.setup
        kept = snapshots_folder(setup.locations.home, setup.cwd)
        return Worktrees(setup.cwd, folder=setup.locations.worktrees_folder, kept=kept)

    def merges(self, is_running: Callable[[str], bool]) -> "WorktreeMerges":
        """Return what merges the worktrees.

        Args:
            is_running: Returns True for the id of a subagent that runs.
        """
        from panpan.capabilities.subagents.worktrees.worktree_merges import WorktreeMerges

        return WorktreeMerges(self.worktrees, is_running)

    async def tidy(self) -> None:
        """Remove what was left of worktrees before, and name those with changes that nobody merged."""
        if self._session.setup.locations.worktrees_folder.is_dir():
            await self._name([worktree.agent_id for worktree in await self.worktrees.tidy()])

    async def name_unmerged(self) -> None:
        """Tell the user which worktrees that were used in this session hold changes that nobody merged."""
        if self._is_used:
            await self._name(await self.worktrees.unmerged())

    async def aclose(self) -> None:
        """Remove the worktrees in which nothing was changed, and let other sessions have those that are left."""
        if self._is_used:
            await self.worktrees.aclose()

    @property
    def _is_used(self) -> bool:
        return "worktrees" in self.__dict__

    async def _name(self, agent_ids: Sequence[str]) -> None:
        from panpan.capabilities.subagents.worktrees.waiting_worktrees import waiting_line

        if agent_ids and (line := await to_thread.run_sync(waiting_line, agent_ids, self._place)):
            self._session.warn(line)
