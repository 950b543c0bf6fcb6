"""What it takes to undo steps: worked out on the kept content, before any file is touched."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from pathlib import Path

from panpan.capabilities.snapshots.history import Cause
from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.differences import Difference, diff_text, differences, listed
from panpan.file_trees.snapshot import Snapshot
from panpan.file_trees.store import SnapshotStore
from panpan.file_trees.way_back import WayBack
from panpan.types.dataclass import dataclass
from panpan.types.file_change import FileChange


@dataclass(frozen=True, slots=True)
class FolderPlan:
    """What undoing does in one folder of the workspace."""

    store: SnapshotStore
    now: Snapshot
    """What the plan is about; where the folder is something else by then, nothing is done."""
    changes: Sequence[Difference]
    """From what is there now to what will be."""
    diff: str
    """The same as a unified diff. Not cleaned for a terminal."""
    conflicts: Mapping[str, str]
    """Why files stay as they are, by path."""
    merged: frozenset[str]
    """Files that keep what the user changed since, beside what comes back."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What undoing, redoing or rewinding does to the files; made by `Snapshots`, carried out by its `restore`."""

    cause: Cause
    folders: Sequence[FolderPlan]
    main: Path
    """The folder that paths are relative to."""
    notes: Sequence[str] = field(default_factory=tuple)
    """What the user should know of it beside the files, a sentence each."""

    @property
    def files(self) -> Sequence[FileChange]:
        """What becomes of each file."""
        return [change for folder in self.folders for change in listed(folder.changes, self._prefix(folder))]

    @property
    def diff(self) -> str:
        """The change as a unified diff. Not cleaned for a terminal."""
        return "".join(folder.diff for folder in self.folders)

    @property
    def conflicts(self) -> Mapping[str, str]:
        """Why files stay as they are, by path; not empty: the user changed them since."""
        found = [(folder, path, why) for folder in self.folders for path, why in folder.conflicts.items()]
        return {self._prefix(folder) + path: why for folder, path, why in found}

    @property
    def merged(self) -> Sequence[str]:
        """Files that keep what the user changed since."""
        return [self._prefix(folder) + path for folder in self.folders for path in sorted(folder.merged)]

    def _prefix(self, folder: FolderPlan) -> str:
        return "" if folder.store.root == self.main else f"{folder.store.root}/"


async def plan_back(
    store: SnapshotStore, steps: Sequence[tuple[Snapshot, Snapshot]], shared: Set[str] = frozenset()
) -> FolderPlan:
    """Return what undoes `steps` in one folder.

    Args:
        store: Of the folder.
        steps: What was before and after each, the oldest first.
        shared: Files that another session may have changed meanwhile; they stay.

    Raises:
        SnapshotError: The folder cannot be kept as it is now, or a snapshot cannot be read.
    """
    now = await store.take()
    back = WayBack(store.repository, now, shared)
    for before, after in reversed(steps):
        await back.undo(before, after)
    try:
        tree = await back.tree()
    except (ToolError, OSError) as error:
        raise SnapshotError(f"what {store.root} would become cannot be worked out: {error}") from error
    then = Snapshot("", tree, back.modes(), now.left_out, await back.empty_folders(tree))
    changes = await differences(store.repository, now, then)
    diff = await diff_text(store.repository, now.tree, tree)
    return FolderPlan(store, now, changes, diff, back.conflicts, frozenset(back.merged & {one.path for one in changes}))
