"""Going back over steps on the kept content: what becomes of each file and folder.

The rule: what the user changed since stays. Where a file is what the step left, it becomes what it was before; where
the user changed other lines of it, both changes are joined; where he changed the same, it is a conflict, and stays.
"""

import os
from collections.abc import Mapping, Set
from pathlib import Path
from tempfile import TemporaryDirectory

from panpan.errors import ToolError
from panpan.file_trees.differences import Difference, content, differences, entries, names
from panpan.file_trees.kept_files import without_folders
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Entry, Modes, Snapshot, all_folders_above
from panpan.types.file_change import is_generated


class WayBack:
    """The files and folders of a folder on their way back, the files as objects of the repository."""

    def __init__(self, repository: OwnRepository, now: Snapshot, shared: Set[str]) -> None:
        self._shared = shared
        self.conflicts: dict[str, str] = {}
        self.merged: set[str] = set()
        self._repository = repository
        self._now = now
        self._entries: dict[str, Entry | None] = {}
        """What becomes of each file and folder that a step touched; None: it is not there."""

    async def undo(self, before: Snapshot, after: Snapshot) -> None:
        """Go back one step."""
        changes = await differences(self._repository, before, after)
        unknown = [one.path for one in changes if one.path not in self._entries]
        there = await entries(self._repository, self._now, unknown)
        self._entries |= {path: there.get(path) for path in unknown}
        for change in changes:
            if change.is_folder:
                self._entries[change.path] = _folder_undone(change, self._entries[change.path])
                continue
            if change.path in self.conflicts:
                continue
            if why := self._now.why_left_out(change.path):
                self.conflicts[change.path] = f"{why}, so that it was not kept as it is now"
                continue
            try:
                self._entries[change.path] = await self._undone(change, self._entries[change.path])
            except _ConflictError as conflict:
                if not is_generated(change.path):  # which stays as it is unsaid
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

    async def empty_folders(self, tree: str) -> frozenset[str]:
        """Return the folders without files in what the folder becomes.

        Args:
            tree: What `tree` returned.
        """
        now, then = [await names(self._repository, one, "-t") for one in (self._now.tree, tree)]
        changed = self._changed_folders()
        wanted = {path for path, entry in changed.items() if entry is not None}
        there = {path for path in now if path.endswith("/")} | self._now.empty
        gone = changed.keys() - wanted
        kept = all_folders_above(there - gone)  # of what the user made in them
        in_the_way = {f"{path}/" for path in then if not path.endswith("/")} & (wanted | all_folders_above(wanted))
        free = set(without_folders(wanted, in_the_way))
        return frozenset((there - (wanted - free) | free) - (gone - kept) - set(then))

    def modes(self) -> Modes:
        """Return the permission bits of what the folder becomes."""
        files = self._changed()
        changed = (*files.items(), *self._changed_folders().items())
        bits = {path: entry.mode for path, entry in changed if entry is not None and entry.mode is not None}
        return self._now.modes.changed(bits, gone=files)  # a folder may have to stay for what is in it

    def _changed(self) -> Mapping[str, Entry | None]:
        """Return what becomes of each file."""
        files = ((path, entry) for path, entry in self._entries.items() if not path.endswith("/"))
        return {path: entry for path, entry in files if path not in self.conflicts}

    def _changed_folders(self) -> Mapping[str, Entry | None]:
        return {path: entry for path, entry in self._entries.items() if path.endswith("/")}

    async def _without_clashes(self) -> Mapping[str, Entry | None]:
        """Return what becomes of each file, without files where a folder is by now, and the other way round."""
        there = set(await names(self._repository, self._now.tree))
        changed = self._changed()
        final = (there - changed.keys()) | {path for path, entry in changed.items() if entry is not None}
        folders = all_folders_above(final)
        in_the_way = tuple(folders & {f"{path}/" for path in final})
        for path, entry in changed.items():
            is_new = entry is not None and path not in there
            if is_new and (f"{path}/" in folders or path.startswith(in_the_way)):
                self.conflicts[path] = "something else has its place by now"
        return self._changed()

    async def _undone(self, change: Difference, now: Entry | None) -> Entry | None:
        """Return what a file was before a change, with what was changed in it since."""
        before, after = change.before, change.after
        if now == before:
            return now
        if change.path in self._shared:
            raise _ConflictError("another session changed it, too, while this one did")
        if now == after:
            return before
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


def _folder_undone(change: Difference, now: Entry | None) -> Entry | None:
    """Return what a folder was before a change; what the user made of it since stays, and so does what is in it."""
    if change.after is None:
        return now or change.before
    return change.before if now == change.after else now


def _index_line(path: str, entry: Entry | None) -> bytes:
    if entry is None:
        return b"0 " + b"0" * 40 + b"\t" + os.fsencode(path) + b"\0"
    mode = "120000" if entry.mode is None else "100755" if entry.mode & 0o100 else "100644"
    return f"{mode} {entry.oid}\t".encode() + os.fsencode(path) + b"\0"
