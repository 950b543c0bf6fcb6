"""Undo, redo and rewind: what they would do to the files, and doing it."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.capabilities.snapshots.history import Cause, SnapshotJournal, Step, UndoHistory
from panpan.capabilities.snapshots.workspace import WorkspaceSnapshots, trees_of
from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.snapshot import Difference, Snapshot, diff_text, differences, list_changes
from panpan.file_trees.store import SnapshotStore
from panpan.file_trees.writing import Revert, write_changes
from panpan.session.log.records import timestamp
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange, files_in_short


async def shared_changes(store: SnapshotStore, steps: Sequence[Step], others: Sequence[UndoHistory]) -> frozenset[str]:
    """Return the files of one folder that changed in a step and in one of another session at the same time.

    Snapshots tell what changed, and not who did it. So what both have seen change at the same time is nobody's to undo.
    A step of the same files and the same moments in another log is a copy, as in a fork; of the same files alone it is
    not, since two sessions that change files in step see the same.
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
    return tuple(step.before.items()), tuple(step.after.items()), step.began, step.ended


async def _paths_of_other(store: SnapshotStore, step: Step) -> frozenset[str]:
    """Return the paths that changed in a step of another session; none where its snapshots are gone."""
    name = str(store.root)
    try:
        before = await store.load(step.before[name])
        after = await store.load(step.after[name]) if name in step.after else await store.take_again(before)
        return await _paths(store, before, after)
    except SnapshotError:
        return frozenset()


async def _paths(store: SnapshotStore, before: Snapshot, after: Snapshot) -> frozenset[str]:
    return frozenset(one.path for one in await differences(store.repository, before, after))


@dataclass(frozen=True, slots=True)
class FolderPlan:
    """Changes that undoing makes in one folder of the workspace."""

    store: SnapshotStore
    now: Snapshot
    """State that the plan is about; where the folder is something else by then, nothing is done."""
    changes: Sequence[Difference]
    """Changes from what is there now to what will be."""
    then: Snapshot
    """State that will be."""
    diff: str
    """The same as a unified diff. Not cleaned for a terminal."""
    conflicts: Mapping[str, str]
    """Reasons why files stay as they are, by path."""
    merged: frozenset[str]
    """Files that keep what the user changed since, beside what comes back."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Changes that undoing, redoing or rewinding makes; made by `Undo`, carried out by its `restore`."""

    cause: Cause
    folders: Sequence[FolderPlan]
    main: Path
    """The folder that paths are relative to."""
    notes: Sequence[str] = field(default_factory=tuple)
    """Sentences that the user should know beside the files."""

    @property
    def files(self) -> Sequence[FileChange]:
        return [change for folder in self.folders for change in list_changes(folder.changes, self._prefix(folder))]

    @property
    def diff(self) -> str:
        """The change as a unified diff. Not cleaned for a terminal."""
        return "".join(folder.diff for folder in self.folders)

    @property
    def conflicts(self) -> Mapping[str, str]:
        """Reasons why files stay as they are, by path: the user changed them since."""
        found = [(folder, path, why) for folder in self.folders for path, why in folder.conflicts.items()]
        return {self._prefix(folder) + path: why for folder, path, why in found}

    @property
    def merged(self) -> Sequence[str]:
        """Files that keep what the user changed since."""
        return [self._prefix(folder) + path for folder in self.folders for path in sorted(folder.merged)]

    def _prefix(self, folder: FolderPlan) -> str:
        return "" if folder.store.root == self.main else f"{folder.store.root}/"


async def plan_revert(
    store: SnapshotStore, steps: Sequence[tuple[Snapshot, Snapshot]], shared: Set[str] = frozenset()
) -> FolderPlan:
    """Return the plan that undoes `steps` in one folder, each before and after, oldest first; `shared` files stay."""
    now = await _now(store, [snapshot for step in steps for snapshot in step])
    back = Revert(store.repository, now, shared)
    for before, after in reversed(steps):
        await back.undo(before, after)
    try:
        tree = await back.tree()
    except (ToolError, OSError) as error:
        raise SnapshotError(f"the changes to {store.root} cannot be computed: {error}") from error
    then = Snapshot("", tree, back.modes(), now.left_out, await back.empty_folders(tree), now.only, now.also)
    changes = await differences(store.repository, now, then)
    diff = await diff_text(store.repository, now.tree, tree)
    return FolderPlan(
        store, now, changes, then, diff, back.conflicts, frozenset(back.merged & {one.path for one in changes})
    )


def join_steps(steps: Sequence[tuple[Snapshot, Snapshot]]) -> Sequence[tuple[Snapshot, Snapshot]]:
    """Return steps of one folder, those about the same that follow each other without a change in between as one."""
    whole: list[tuple[Snapshot, Snapshot]] = []
    for before, after in steps:
        if whole and whole[-1][1].id == before.id and whole[-1][0].only == after.only:
            whole[-1] = (whole[-1][0], after)
        else:
            whole.append((before, after))
    return whole


async def _now(store: SnapshotStore, snapshots: Sequence[Snapshot]) -> Snapshot:
    """Return a folder as it is now; only the files that the snapshots are about, if each is about some.

    A file in a folder that is left out is in it, too, if a snapshot is about it.
    """
    about = [snapshot.only for snapshot in snapshots if snapshot.only is not None]
    named = frozenset().union(*about, *(snapshot.also for snapshot in snapshots))
    return await (store.take(named) if len(about) < len(snapshots) else store.take_files(named))


_NOT_ENDED = "a snapshot of the files cannot be taken now"


class Undo:
    """Brings the files of a session's workspace back. Nothing of it may run while a turn does."""

    def __init__(self, workspace: WorkspaceSnapshots, journal: SnapshotJournal) -> None:
        self._workspace = workspace
        self._journal = journal

    async def plan_undo(self) -> RestorePlan:
        """Return the plan to undo the newest turn, undo or rewind that changed files and is not undone.

        Raises:
            SnapshotError: There is none, or it cannot be worked out.
        """
        history = await self._history()
        if (operation := history.undoable) is None:
            why = "no turn of this session changed files that were kept"
            raise SnapshotError(f"there is nothing to undo: {why if history.opened is None else _NOT_ENDED}")
        return await self._plan("undo", operation.steps)

    async def plan_redo(self) -> RestorePlan:
        """Return the plan to redo the last undo.

        Raises:
            SnapshotError: Nothing was undone since files were last changed, or it cannot be worked out.
        """
        if (operation := (await self._history()).undone) is None:
            raise SnapshotError("there is nothing to redo since files were last changed")
        return await self._plan("redo", operation.steps)

    async def plan_rewind(self, message_uuid: str) -> RestorePlan:
        """Return the plan to bring the files back to their state before a message of the user.

        Raises:
            SnapshotError: The log does not have the message, or it cannot be worked out.
        """
        history = await self._history()
        try:
            steps = history.steps_since(message_uuid)
        except KeyError:
            raise SnapshotError("there is no snapshot of the files before this message") from None
        return await self._plan("rewind", steps)

    async def restore(self, plan: RestorePlan) -> Sequence[FileChange]:
        """Carry out a plan: all files or none; those with conflicts stay as they are. It can itself be undone.

        Raises:
            SnapshotError: The files are not those that the plan was made for, or one cannot be written.
        """
        since = timestamp()
        async with self._workspace.lock:
            for folder in plan.folders:
                if (await folder.store.take_again(folder.now)).id != folder.now.id:
                    raise SnapshotError("nothing was changed: files have changed meanwhile; try again")
            with anyio.CancelScope(shield=True):  # half of it would be neither state
                for folder in plan.folders:
                    await to_thread.run_sync(folder.store.remove_leftovers)
                    await write_changes(folder.store.repository, folder.changes)
                before = {folder.store.root: folder.now for folder in plan.folders}
                after = await self._workspace.take_again(before)
                self._journal.add(plan.cause, trees_of(before), trees_of(after), since=since, files=plan.files)
                self._journal.note_restored()
        return plan.files

    async def _history(self) -> UndoHistory:
        """Return the changes; what a crash has left open ends now, so that it can be undone, too."""
        history = await self._journal.history()
        if history.opened is not None:
            async with self._workspace.lock:
                if now := trees_of(await self._workspace.take_since(history.opened)):
                    self._journal.add("turn", history.opened, now)
                    history.close(now)
        return history

    async def _plan(self, cause: Cause, steps: Sequence[Step]) -> RestorePlan:
        here = {str(root): root for root in self._workspace.folders}
        folders = []
        async with self._workspace.lock:
            for name, root in here.items():
                pairs = [
                    (step.before[name], step.after[name]) for step in steps if name in step.before.keys() & step.after
                ]
                store = self._workspace.store(root)
                found = iter(await store.load_all([id_ for pair in pairs for id_ in pair]))
                loaded = list(zip(found, found, strict=True))
                if loaded := [pair for pair in join_steps(loaded) if pair[0].id != pair[1].id]:
                    shared = await shared_changes(store, steps, await self._journal.others(steps[0].began))
                    folders.append(await plan_revert(store, loaded, shared))
        changed = {name for step in steps for name in step.before if step.before[name] != step.after.get(name)}
        elsewhere = sorted(changed - here.keys())
        notes = [f"what changed in {name} stays, since it is not part of this workspace" for name in elsewhere]
        return RestorePlan(cause, folders, self._workspace.folders[0], notes)


async def done_diff(plan: RestorePlan) -> str:
    """Return the changes that a plan would take back as a unified diff, not cleaned for a terminal.

    Raises:
        SnapshotError: A snapshot cannot be read.
    """
    diffs = [await diff_text(one.store.repository, one.then.tree, one.now.tree) for one in plan.folders]
    return "".join(diffs)


MAX_FILES = 50
"""Most that are listed; how many more there are is said."""
MAX_DIFF_LINES = 200

_SIGNS = {"added": "+", "deleted": "-", "modified": "~"}
_DONE = {"undo": "undone", "redo": "done again", "rewind": "brought back"}


def plan_lines(plan: RestorePlan) -> Sequence[str]:
    """Return the files that would change, and those that stay and why; safe for a terminal."""
    lines = [f"{plan.cause} changes {files_in_short(plan.files)}:"] if plan.files else []
    notes = dict.fromkeys(plan.merged, ", joined with what you changed since")
    files = [file for file in plan.files if not file.is_generated]
    lines += [f"  {change_line(file)}{notes.get(file.path, '')}" for file in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        lines.append(f"  … {len(files) - MAX_FILES:,} more")
    if conflicts := list(plan.conflicts.items()):
        lines.append("these stay as they are:")
        lines += [f"  ! {clean_line(path)}: {clean_line(why)}" for path, why in conflicts[:MAX_FILES]]
        if len(conflicts) > MAX_FILES:
            lines.append(f"  … {len(conflicts) - MAX_FILES:,} more")
    return [*lines, *(clean_line(note) for note in plan.notes)]


def diff_lines(plan: RestorePlan) -> Sequence[str]:
    """Return the difference without that of generated files, cut if it is long; safe for a terminal."""
    generated = tuple(f" b/{file.path}" for file in plan.files if file.is_generated)
    of_files = re.split(r"^(?=diff --git )", plan.diff, flags=re.MULTILINE)
    shown = "".join(one for one in of_files if not one.partition("\n")[0].endswith(generated))
    lines = clean_for_terminal(shown).split("\n")
    if len(lines) > MAX_DIFF_LINES:
        return [*lines[:MAX_DIFF_LINES], f"… {len(lines) - MAX_DIFF_LINES:,} more lines"]
    return lines if shown else []


def change_line(change: FileChange) -> str:
    """Return the change of one file or folder, such as "~ src/app.py +3 -1"; safe for a terminal."""
    return f"{_SIGNS[change.kind]} {clean_line(change.path)} {_extent(change)}"


def _extent(change: FileChange) -> str:
    if change.is_folder:
        return "folder, mode" if change.kind == "modified" else "folder"
    if change.added is None or change.deleted is None:
        return "binary"
    if change.added or change.deleted:
        return f"+{change.added:,} -{change.deleted:,}"
    return {"added": "new, empty", "deleted": "was empty", "modified": "mode"}[change.kind]


def nothing_to_do(plan: RestorePlan) -> str:
    """Return the reason why there is nothing to ask about; empty where there is."""
    if plan.files:
        return ""
    if plan.conflicts:
        return "nothing can be undone: each of these files has changed since"
    if plan.notes:
        return f"no file of this workspace was changed; the next {plan.cause} continues from there"
    return f"the files are already as before; the next {plan.cause} continues from there"


def done_line(plan: RestorePlan) -> str:
    """Return the outcome on one line."""
    if not plan.files:
        return f"no file was changed; the next {plan.cause} continues from there"
    back = {"undo": "redo", "redo": "undo", "rewind": "undo"}[plan.cause]
    return f"{_DONE[plan.cause]}: {files_in_short(plan.files)}; {back} takes it back"
