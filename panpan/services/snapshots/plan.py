"""What it takes to undo steps: worked out on the kept content, before any file is touched.

The rule: what the user changed since stays. Where a file is what the step left, it becomes what it was before; where
the user changed other lines of it, both changes are joined; where he changed the same, it is a conflict, and stays.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory

from panpan.errors import SnapshotError, ToolError
from panpan.services.snapshots.differences import Difference, content, diff_text, differences, entries
from panpan.services.snapshots.history import Cause
from panpan.services.snapshots.modes import Modes
from panpan.services.snapshots.snapshot import Entry, Snapshot
from panpan.services.snapshots.store import SnapshotStore
from panpan.system.own_repository import OwnRepository
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
        return [change.as_change(self._prefix(folder)) for folder in self.folders for change in folder.changes]

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


async def way_back(store: SnapshotStore, steps: Sequence[tuple[Snapshot, Snapshot]]) -> FolderPlan:
    """Return what undoes `steps` in one folder.

    Args:
        store: Of the folder.
        steps: What was before and after each, the oldest first.

    Raises:
        SnapshotError: The folder cannot be kept as it is now, or a snapshot cannot be read.
    """
    now = await store.take()
    back = _WayBack(store.repository, now)
    for before, after in reversed(steps):
        await back.undo(before, after)
    try:
        tree = await back.tree()
    except (ToolError, OSError) as error:
        raise SnapshotError(f"what {store.root} would become cannot be worked out: {error}") from error
    then = Snapshot("", tree, back.modes(), now.left_out)
    changes = await differences(store.repository, now, then)
    diff = await diff_text(store.repository, now.tree, tree)
    return FolderPlan(store, now, changes, diff, back.conflicts, frozenset(back.merged & {one.path for one in changes}))


class _WayBack:
    """The files of a folder on their way back, as objects of the repository."""

    def __init__(self, repository: OwnRepository, now: Snapshot) -> None:
        self.conflicts: dict[str, str] = {}
        self.merged: set[str] = set()
        self._repository = repository
        self._now = now
        self._files: dict[str, Entry | None] = {}
        """What becomes of each file that a step touched; None: it is not there."""

    async def undo(self, before: Snapshot, after: Snapshot) -> None:
        """Go back one step."""
        changes = await differences(self._repository, before, after)
        unknown = [one.path for one in changes if one.path not in self._files]
        there = await entries(self._repository, self._now, unknown)
        self._files |= {path: there.get(path) for path in unknown}
        for change in changes:
            if change.path in self.conflicts:
                continue
            if why := self._now.why_left_out(change.path):
                self.conflicts[change.path] = f"{why}, so that it was not kept as it is now"
                continue
            try:
                self._files[change.path] = await self._undone(change, self._files[change.path])
            except _ConflictError as conflict:
                self.conflicts[change.path] = str(conflict)

    async def tree(self) -> str:
        """Return the tree of what the folder becomes."""
        changed = await self._without_clashes()
        index = self._repository.folder / "indexes" / f"plan-{os.getpid()}.plan"
        try:
            await self._repository.run("read-tree", self._now.tree, index=index)
            if changed:
                lines = b"".join(_index_line(path, entry) for path, entry in changed.items())
                await self._repository.run("update-index", "-z", "--index-info", index=index, stdin=lines)
            return (await self._repository.run("write-tree", index=index)).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def modes(self) -> Modes:
        """Return the permission bits of what the folder becomes."""
        changed = self._changed()
        bits = {path: entry.mode for path, entry in changed.items() if entry is not None and entry.mode is not None}
        return self._now.modes.changed(bits, gone=changed)

    def _changed(self) -> Mapping[str, Entry | None]:
        return {path: entry for path, entry in self._files.items() if path not in self.conflicts}

    async def _without_clashes(self) -> Mapping[str, Entry | None]:
        """Return what changes, without files where a folder is by now, and the other way round."""
        printed = await self._repository.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", self._now.tree)
        there = {os.fsdecode(name) for name in printed.split(b"\0")[:-1]}
        changed = self._changed()
        final = (there - changed.keys()) | {path for path, entry in changed.items() if entry is not None}
        folders = {folder for path in final for folder in _above(path)}
        for path, entry in changed.items():
            if entry is not None and path not in there and (path in folders or any(up in final for up in _above(path))):
                self.conflicts[path] = "something else has its place by now"
        return self._changed()

    async def _undone(self, change: Difference, now: Entry | None) -> Entry | None:
        """Return what a file was before a change, with what was changed in it since."""
        before, after = change.before, change.after
        if now == after:
            return before
        if now == before:
            return now
        if before is None:
            raise _ConflictError("it was changed since" if now else "it was deleted since")
        if now is None:
            raise _ConflictError("it was deleted since")
        if after is None:
            raise _ConflictError("it was made again since")
        if None in (before.mode, now.mode, after.mode):
            raise _ConflictError("it was changed since")
        oid = await self._merged(change.path, now.oid, after.oid, before.oid)
        return Entry(oid, before.mode if now.mode == after.mode else now.mode)

    async def _merged(self, path: str, now: str, after: str, before: str) -> str:
        """Return the content with the change from `after` to `now`, and back from `after` to `before`."""
        if now == after:
            return before
        if before in (after, now):
            return now
        contents = [await content(self._repository, oid) for oid in (now, after, before)]
        with TemporaryDirectory(dir=self._repository.folder) as folder:
            places = [Path(folder, name) for name in ("now", "after", "before")]
            for place, data in zip(places, contents, strict=True):
                place.write_bytes(data)
            try:
                merged = await self._repository.run("merge-file", "-p", "-q", *map(str, places))
            except ToolError as error:
                raise _ConflictError("the same lines were changed since") from error
        self.merged.add(path)
        made = await self._repository.run("hash-object", "-w", "--no-filters", "--stdin", stdin=merged)
        return made.decode().strip()


class _ConflictError(Exception):
    """A file was changed since in a way that cannot be joined with the way back."""


def _above(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _index_line(path: str, entry: Entry | None) -> bytes:
    if entry is None:
        return b"0 " + b"0" * 40 + b"\t" + os.fsencode(path) + b"\0"
    mode = "120000" if entry.mode is None else "100755" if entry.mode & 0o100 else "100644"
    return f"{mode} {entry.oid}\t".encode() + os.fsencode(path) + b"\0"
