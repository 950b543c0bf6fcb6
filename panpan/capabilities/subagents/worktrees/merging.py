"""What merging a worktree does to the project: worked out three-way, before any file is touched.

The rule: what the user, or another agent, changed since stays. Changes of other lines are joined; where both changed
the same, the project's file stays as it is, and the worktree has the agent's.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from anyio import to_thread

from panpan.capabilities.subagents.worktrees.agents_worktrees import WorktreeMerge
from panpan.capabilities.subagents.worktrees.kept_content import keep_files
from panpan.capabilities.subagents.worktrees.worktree import Worktree, shown
from panpan.editing.edited import ChangeReport
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Difference, Entry, Snapshot, all_folders_above, differences
from panpan.file_trees.writing import WayBack, contents_of, opened_above, write_changes
from panpan.system.files.folder_tree import walk
from panpan.system.files.read_file import opened_folder
from panpan.system.text.file_text import decode_file
from panpan.types.dataclass import dataclass
from panpan.types.display import FileDiff

_MAX_SHOWN = 200
"""Files of which the lines are told; of more, only how many lines."""
_SHOWN_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What merging does."""

    changes: Sequence[Difference]
    """In the user's work tree, from what is there now to what will be."""
    told: WorktreeMerge


class Merging:
    """Works out merges into one work tree of the user's, and carries them out.

    Args:
        repository: Has the content; its work tree is the user's.
        index: A file for git's index of the user's files; made anew each time.
        limits: How large a file may be.
    """

    def __init__(self, repository: OwnRepository, index: Path, limits: KeepLimits) -> None:
        self._repository = repository
        self._index = index
        self._limits = limits

    async def plan(self, base: Snapshot, theirs: Snapshot, left: Mapping[str, str], worktree: Worktree) -> MergePlan:
        """Return what it takes to bring the changes from `base` to `theirs` into the user's files.

        Raises:
            PanpanError: It cannot be worked out.
            OSError: There is no place for it.
        """
        paths = [one.path for one in await differences(self._repository, base, theirs) if not one.is_folder]
        now = await self._now(paths, base)
        # Undoing the way from the agent's files to those that it began with is doing what the agent did.
        way = WayBack(self._repository, now, frozenset())
        await way.undo(theirs, base)
        then = Snapshot("", await way.tree(), way.modes(), now.left_out)
        found = await differences(self._repository, now, then)
        changes = [one for one in found if not one.is_folder]
        diffs = await self._diffs(changes, worktree)
        conflicts = {shown(path, worktree): why for path, why in way.conflicts.items()}
        changed = {one.path for one in changes}
        merged = [shown(path, worktree) for path in sorted(way.merged & changed)]
        return MergePlan(changes, WorktreeMerge(_id(changes, conflicts), diffs, conflicts, merged, left))

    async def carry_out(self, plan: MergePlan, worktree: Worktree) -> None:
        """Make the changes, all of them or none; a file is only replaced while it is what the plan took it for.

        Raises:
            SnapshotError: One could not be made.
        """
        await write_changes(self._repository, plan.changes)
        gone = [one.path for one in plan.changes if one.after is None]
        await to_thread.run_sync(self._remove_emptied, gone, worktree)

    async def _now(self, paths: Sequence[str], base: Snapshot) -> Snapshot:
        """Return what the user has at `paths`, and what is in their way."""
        with suppress(FileNotFoundError):
            self._index.unlink()
        wanted = await to_thread.run_sync(lambda: [*paths, *self._in_the_way(paths)])
        try:
            return await keep_files(
                self._repository, self._index, list(dict.fromkeys(wanted)), self._limits, usual=base.modes
            )
        finally:
            self._index.unlink(missing_ok=True)

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

    def _remove_emptied(self, gone: Sequence[str], worktree: Worktree) -> None:
        """Remove the folders that lost their last file and that the agent does not have any more."""
        with opened_folder(self._repository.work_tree) as top:
            for folder in sorted(all_folders_above(gone), key=len, reverse=True):
                if not os.path.lexists(f"{worktree.top}/{folder}"):
                    with suppress(OSError), opened_above(top, folder) as (above, name):  # the user's is in it
                        os.rmdir(name, dir_fd=above)

    async def _diffs(self, changes: Sequence[Difference], worktree: Worktree) -> Sequence[FileDiff]:
        """Return what becomes of each file, for people."""
        diffs: list[FileDiff] = []
        for start in range(0, len(changes), _SHOWN_AT_ONCE):
            some = changes[start : start + _SHOWN_AT_ONCE]
            contents: Mapping[str, bytes] = {}
            if start < _MAX_SHOWN:
                entries = [entry for one in some for entry in (one.before, one.after) if entry is not None]
                contents = await contents_of(self._repository, [entry.oid for entry in entries])
            diffs += await to_thread.run_sync(_told, some, contents, worktree)
        return diffs


def _id(changes: Sequence[Difference], conflicts: dict[str, str]) -> str:
    data = repr([(one.path, one.before, one.after) for one in changes]) + repr(sorted(conflicts))
    return blake2b(data.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _told(changes: Sequence[Difference], contents: Mapping[str, bytes], worktree: Worktree) -> Sequence[FileDiff]:
    """Return the lines of what has lines, and how many they are of the rest."""
    diffs = []
    for one in changes:
        path = shown(one.path, worktree)
        before, after = _text(one.before, contents), _text(one.after, contents)
        if _has_lines(one.before, before) and _has_lines(one.after, after):
            diffs.append(ChangeReport(path, before, after).diff())
            continue
        is_new, is_deleted = one.before is None, one.after is None
        counts = (one.added or 0, one.deleted or 0)
        diffs.append(
            FileDiff(path=path, diff="", added=counts[0], removed=counts[1], is_new=is_new, is_deleted=is_deleted)
        )
    return diffs


def _text(entry: Entry | None, contents: Mapping[str, bytes]) -> str | None:
    if entry is None or entry.oid not in contents:
        return None
    if entry.mode is None:
        return f"link to {contents[entry.oid].decode(errors='backslashreplace')}\n"
    text = decode_file(contents[entry.oid])
    return None if text is None else text.readable


def _has_lines(entry: Entry | None, text: str | None) -> bool:
    return entry is None or text is not None
