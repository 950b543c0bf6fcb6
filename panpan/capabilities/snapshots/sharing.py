"""Which changes of a session may be those of another one, that worked in the same folder at the same time.

Snapshots tell what changed, and not who did it. So what both have seen change at the same time is nobody's to undo. A
step of the same files and the same moments in another log is a copy, as in a fork; of the same files alone it is not,
since two sessions that change files in step see the same.
"""

from collections.abc import Sequence

from panpan.capabilities.snapshots.history import Step, UndoHistory
from panpan.errors import SnapshotError
from panpan.file_trees.differences import differences
from panpan.file_trees.snapshot import Snapshot
from panpan.file_trees.store import SnapshotStore


async def shared_changes(store: SnapshotStore, steps: Sequence[Step], others: Sequence[UndoHistory]) -> frozenset[str]:
    """Return the files of one folder that changed in a step and in one of another session at the same time.

    Args:
        store: Of the folder.
        steps: Of the session.
        others: Those of the other sessions.

    Raises:
        SnapshotError: A snapshot of the session cannot be read.
    """
    name = str(store.root)
    shared: set[str] = set()
    own = {_identity(step) for step in steps}
    for step in (one for one in steps if name in one.before and name in one.after):
        meanwhile = [one for other in others for one in other.steps_during(step) if name in one.before]
        besides = [one for one in meanwhile if _identity(one) not in own]
        if besides:
            ours = await _paths(store, await store.load(step.before[name]), await store.load(step.after[name]))
            for one in besides:
                shared |= ours & await _paths_of_other(store, one)
    return frozenset(shared)


def _identity(step: Step) -> tuple[object, ...]:
    """Return what only a copy of a step has, too."""
    return tuple(step.before.items()), tuple(step.after.items()), step.began, step.ended


async def _paths_of_other(store: SnapshotStore, step: Step) -> frozenset[str]:
    """Return what changed in a step of another session; nothing where its snapshots are gone."""
    name = str(store.root)
    try:
        before = await store.load(step.before[name])
        after = await store.load(step.after[name]) if name in step.after else await store.take()
        return await _paths(store, before, after)
    except SnapshotError:
        return frozenset()


async def _paths(store: SnapshotStore, before: Snapshot, after: Snapshot) -> frozenset[str]:
    return frozenset(one.path for one in await differences(store.repository, before, after))
