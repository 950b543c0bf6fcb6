"""The ways back: what undo, redo and rewind would do to the files, and doing it."""

from collections.abc import Sequence

import anyio
from anyio import to_thread

from panpan.capabilities.snapshots.history import Cause, Step, UndoHistory, joined
from panpan.capabilities.snapshots.journal import SnapshotJournal
from panpan.capabilities.snapshots.plan import RestorePlan, plan_back
from panpan.capabilities.snapshots.sharing import shared_changes
from panpan.capabilities.snapshots.workspace import WorkspaceSnapshots, trees_of
from panpan.errors import SnapshotError
from panpan.file_trees.writing import write_changes
from panpan.session.records import timestamp
from panpan.types.file_change import FileChange

_NOT_ENDED = "what the newest turn changed has no end, since the files cannot be kept as they are now"


class Undo:
    """Brings the files of a session's workspace back. Nothing of it may run while a turn does.

    Args:
        workspace: Has the snapshots.
        journal: Says what was changed, and gets what is brought back.
    """

    def __init__(self, workspace: WorkspaceSnapshots, journal: SnapshotJournal) -> None:
        self._workspace = workspace
        self._journal = journal

    async def plan_undo(self) -> RestorePlan:
        """Return what it takes to undo the newest turn, or way back, that changed files and is not undone.

        Raises:
            SnapshotError: There is none, or it cannot be worked out.
        """
        history = await self._history()
        if (operation := history.undoable) is None:
            why = "no turn of this session changed files that were kept"
            raise SnapshotError(f"there is nothing to undo: {why if history.opened is None else _NOT_ENDED}")
        return await self._plan("undo", operation.steps)

    async def plan_redo(self) -> RestorePlan:
        """Return what it takes to do again what was undone last.

        Raises:
            SnapshotError: Nothing was undone since files were last changed, or it cannot be worked out.
        """
        if (operation := (await self._history()).undone) is None:
            raise SnapshotError("there is nothing to redo: nothing was undone since files were last changed")
        return await self._plan("redo", operation.steps)

    async def plan_rewind(self, message_uuid: str) -> RestorePlan:
        """Return what it takes to bring the files to where they were before a message of the user.

        Args:
            message_uuid: `uuid` of the message.

        Raises:
            SnapshotError: The log does not have the message, or it cannot be worked out.
        """
        history = await self._history()
        try:
            steps = history.steps_since(message_uuid)
        except KeyError:
            raise SnapshotError("the session's log does not say how the files were before this message") from None
        return await self._plan("rewind", steps)

    async def restore(self, plan: RestorePlan) -> Sequence[FileChange]:
        """Carry out a plan: all files or none; those with conflicts stay as they are. It can itself be undone.

        Returns:
            What became of each file.

        Raises:
            SnapshotError: The files are not those that the plan was made for, or one cannot be written.
        """
        since = timestamp()
        async with self._workspace.lock:
            for folder in plan.folders:
                if (await folder.store.take()).id != folder.now.id:
                    raise SnapshotError("files have changed since this was worked out, so nothing was done; look again")
            with anyio.CancelScope(shield=True):  # a part of it would be neither state
                for folder in plan.folders:
                    await to_thread.run_sync(folder.store.remove_leavings)
                    await write_changes(folder.store.repository, folder.changes)
                before = {folder.store.root: folder.now for folder in plan.folders}
                after = await self._workspace.take(before)
                self._journal.add(plan.cause, trees_of(before), trees_of(after), since=since, files=plan.files)
                self._journal.came_back = True
        return plan.files

    async def _history(self) -> UndoHistory:
        """Return what was changed; what a crash has left open ends now, so that it can be undone, too."""
        history = await self._journal.history()
        if history.opened is not None:
            async with self._workspace.lock:
                if now := trees_of(await self._workspace.take()):
                    self._journal.add("turn", history.opened, now)
                    history.close(now)
        return history

    async def _plan(self, cause: Cause, steps: Sequence[Step]) -> RestorePlan:
        here = {str(root): root for root in self._workspace.folders}
        folders = []
        async with self._workspace.lock:
            for name, root in here.items():
                pairs = [
                    (step.before[name], step.after[name])
                    for step in steps
                    if name in step.before and name in step.after
                ]
                if pairs := [pair for pair in joined(pairs) if pair[0] != pair[1]]:
                    store = self._workspace.store(root)
                    loaded = [(await store.load(before), await store.load(after)) for before, after in pairs]
                    shared = await shared_changes(store, steps, await self._journal.others(steps[0].began))
                    folders.append(await plan_back(store, loaded, shared))
        changed = {name for step in steps for name in step.before if step.before[name] != step.after.get(name)}
        elsewhere = sorted(changed - here.keys())
        notes = [f"what changed in {name} stays, since it is no part of this workspace" for name in elsewhere]
        return RestorePlan(cause, folders, self._workspace.folders[0], notes)
