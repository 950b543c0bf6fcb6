"""Three-way merge of a tree into the files of a folder, planned before any file is touched.

The rule: what the user, or another agent, changed since stays. Changes of other lines are joined; where both changed
the same, the folder's file stays as it is.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from anyio import to_thread

from panpan.errors import ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.listed_files import keep_files
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Difference, Snapshot, all_folders_above, differences, entries, git_mode
from panpan.file_trees.writing import Revert, opened_above, write_changes
from panpan.system.files.folder_tree import walk
from panpan.system.files.read_file import opened_folder
from panpan.types.dataclass import dataclass

_RUN_BY_OWNER = 0o100
_HARMLESS = 0o755
"""Permission bits that a merge may add to any file."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The effect of a merge on the files of a folder."""

    changes: Sequence[Difference]
    """Differences between the files now and after the merge."""
    conflicts: Mapping[str, str]
    """Reasons why files stay as they are, by path."""
    merged: Sequence[str]
    """Files in which changes of both sides are joined."""

    @property
    def id(self) -> str:
        """Return a text that differs wherever something else would be done."""
        data = repr([(one.path, one.before, one.after) for one in self.changes]) + repr(sorted(self.conflicts))
        return blake2b(data.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


class Merging:
    """Works out merges into the work tree of a repository of panpan's own, and carries them out.

    Args:
        repository: It has the content of both sides, and the folder as its work tree.
        index: A file for the time of a plan.
        limits: Largest files that are merged.
    """

    def __init__(self, repository: OwnRepository, index: Path, limits: KeepLimits) -> None:
        self._repository = repository
        self._index = index
        self._limits = limits

    async def plan(self, base: Snapshot, theirs: Snapshot, *, is_of_git: bool = False) -> MergePlan:
        """Return the changes of the files that bring in those from `base` to `theirs`.

        Args:
            base: The files with which the other side began.
            theirs: Its files now.
            is_of_git: True if git made the files of the other side, which knows a single permission bit; others that
                differ from those of the folder are nobody's change.

        Raises:
            PanpanError: Files or snapshots cannot be read.
        """
        paths = [one.path for one in await differences(self._repository, base, theirs) if not one.is_folder]
        try:
            now = await self._now(paths, base)
        except OSError as error:
            raise ToolError(f"the merge cannot be planned: {error.strerror}") from error
        if is_of_git:
            base, theirs = await self._with_bits_of(now, base, theirs, paths)
        theirs = await self._without_new_rights(base, theirs, paths)
        # To do what the other side did, undo the way from its files back to those that it began with.
        way = Revert(self._repository, now, frozenset())
        await way.undo(theirs, base)
        then = Snapshot("", await way.tree(), way.modes(), now.left_out)
        changes = [one for one in await differences(self._repository, now, then) if not one.is_folder]
        return MergePlan(changes, way.conflicts, sorted(way.merged & {one.path for one in changes}))

    async def apply(self, plan: MergePlan, has_folder: Callable[[str], bool]) -> None:
        """Make all changes or none; a file is only replaced while it is as planned.

        Args:
            plan: What `plan` returned.
            has_folder: True for a folder that the other side has still; others that lost their last file are removed.

        Raises:
            PanpanError: A file is not as planned or cannot be written; all are as they were then.
        """
        await write_changes(self._repository, plan.changes)
        gone = [one.path for one in plan.changes if one.after is None]
        await to_thread.run_sync(self._remove_emptied, gone, has_folder)

    async def _now(self, paths: Sequence[str], base: Snapshot) -> Snapshot:
        """Return the files at `paths`, and those in their way."""
        with suppress(FileNotFoundError):
            self._index.unlink()
        wanted = await to_thread.run_sync(lambda: [*paths, *self._in_the_way(paths)])
        try:
            return await keep_files(
                self._repository, self._index, list(dict.fromkeys(wanted)), self._limits, usual=base.modes
            )
        finally:
            self._index.unlink(missing_ok=True)

    async def _with_bits_of(
        self, now: Snapshot, base: Snapshot, theirs: Snapshot, paths: Sequence[str]
    ) -> tuple[Snapshot, Snapshot]:
        """Return both sides with the folder's permission bits, where these are the same for git."""
        here, old, new = [await entries(self._repository, one, paths) for one in (now, base, theirs)]
        bits: dict[str, int] = {}
        for path in here.keys() & old.keys():
            mode = here[path].mode
            if mode is not None and git_mode(mode) == git_mode(old[path].mode):
                bits[path] = mode
        kept = {path: mode for path, mode in bits.items() if path in new and new[path].mode == old[path].mode}
        return (
            replace(base, modes=base.modes.changed(bits)),
            replace(theirs, modes=theirs.modes.changed(kept)),
        )

    async def _without_new_rights(self, base: Snapshot, theirs: Snapshot, paths: Sequence[str]) -> Snapshot:
        """Return the other side without bits that let others write a file, or run it as its owner, if it added them."""
        old, new = await entries(self._repository, base, paths), await entries(self._repository, theirs, paths)
        bits: dict[str, int] = {}
        for path, entry in new.items():
            if entry.mode is None:
                continue
            before = old[path].mode if path in old else None
            if before is None:
                before = base.modes.of(path, is_program=bool(entry.mode & _RUN_BY_OWNER))
            if (allowed := entry.mode & (before | _HARMLESS)) != entry.mode:
                bits[path] = allowed
        return replace(theirs, modes=theirs.modes.changed(bits)) if bits else theirs

    def _in_the_way(self, paths: Sequence[str]) -> Iterator[str]:
        """Yield files where a folder is needed, and one file of each folder where a file is needed."""
        root = self._repository.work_tree
        yield from sorted(above[:-1] for above in all_folders_above(paths))
        for path in paths:
            place = root / path
            if place.is_dir() and not place.is_symlink():
                files = (Path(here, name) for here, _, names in walk(place) for name in names)
                if (first := next(files, None)) is not None:
                    yield str(first.relative_to(root))

    def _remove_emptied(self, gone: Sequence[str], has_folder: Callable[[str], bool]) -> None:
        """Remove the folders that lost their last file and that the other side does not have any more."""
        with opened_folder(self._repository.work_tree) as top:
            for folder in sorted(all_folders_above(gone), key=len, reverse=True):
                if not has_folder(folder):
                    with suppress(OSError), opened_above(top, folder) as (above, name):  # a file of the user is in it
                        os.rmdir(name, dir_fd=above)
