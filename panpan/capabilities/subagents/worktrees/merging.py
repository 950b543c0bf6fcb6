"""Three-way merge of a worktree into the project, planned before any file is touched.

The rule: what the user, or another agent, changed since stays. Changes of other lines are joined; where both changed
the same, the project's file stays as it is, and the worktree has the agent's.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.capabilities.subagents.worktrees.merge_worktree import WorktreeMerge
from panpan.capabilities.subagents.worktrees.worktree import Worktree, display_path
from panpan.capabilities.subagents.worktrees.worktrees import Worktrees
from panpan.editing.planned_edit import ChangeReport
from panpan.errors import ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.listed_files import keep_files
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Difference, Entry, Snapshot, all_folders_above, diff_text, differences
from panpan.file_trees.writing import Revert, contents_of, opened_above, write_changes
from panpan.system.files.folder_tree import walk
from panpan.system.files.read_file import opened_folder
from panpan.system.text.file_text import decode_file
from panpan.types.content import FileDiff
from panpan.types.dataclass import dataclass

_MAX_SHOWN = 200
"""Files whose lines are shown; of more, only counts."""
_SHOWN_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Changes of a merge, and the summary of them for people."""

    changes: Sequence[Difference]
    """Differences between the user's files now and after the merge."""
    report: WorktreeMerge


class Merging:
    """Works out merges into one work tree of the user's, and carries them out."""

    def __init__(self, repository: OwnRepository, index: Path, limits: KeepLimits) -> None:
        self._repository = repository
        self._index = index
        self._limits = limits

    async def plan(self, base: Snapshot, theirs: Snapshot, left: Mapping[str, str], worktree: Worktree) -> MergePlan:
        """Return the changes of the user's files that bring in those from `base` to `theirs`."""
        paths = [one.path for one in await differences(self._repository, base, theirs) if not one.is_folder]
        now = await self._now(paths, base)
        # To do what the agent did, undo the way from its files back to those that it began with.
        way = Revert(self._repository, now, frozenset())
        await way.undo(theirs, base)
        then = Snapshot("", await way.tree(), way.modes(), now.left_out)
        found = await differences(self._repository, now, then)
        changes = [one for one in found if not one.is_folder]
        diffs = await self._diffs(changes, worktree)
        conflicts = {display_path(path, worktree): why for path, why in way.conflicts.items()}
        changed = {one.path for one in changes}
        merged = [display_path(path, worktree) for path in sorted(way.merged & changed)]
        return MergePlan(changes, WorktreeMerge(_id(changes, conflicts), diffs, conflicts, merged, left))

    async def apply(self, plan: MergePlan, worktree: Worktree) -> None:
        """Make all changes or none; a file is only replaced while it is as planned."""
        await write_changes(self._repository, plan.changes)
        gone = [one.path for one in plan.changes if one.after is None]
        await to_thread.run_sync(self._remove_emptied, gone, worktree)

    async def _now(self, paths: Sequence[str], base: Snapshot) -> Snapshot:
        """Return the user's files at `paths`, and those in their way."""
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
                    with suppress(OSError), opened_above(top, folder) as (above, name):  # a file of the user is in it
                        os.rmdir(name, dir_fd=above)

    async def _diffs(self, changes: Sequence[Difference], worktree: Worktree) -> Sequence[FileDiff]:
        diffs: list[FileDiff] = []
        for start in range(0, len(changes), _SHOWN_AT_ONCE):
            some = changes[start : start + _SHOWN_AT_ONCE]
            contents: Mapping[str, bytes] = {}
            if start < _MAX_SHOWN:
                entries = [entry for one in some for entry in (one.before, one.after) if entry is not None]
                contents = await contents_of(self._repository, [entry.oid for entry in entries])
            diffs += await to_thread.run_sync(_told, some, contents, worktree)
        return diffs


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
            return (await self._plan(self._idle(agent_id))).report

    async def merge(self, agent_id: str, *, only: str | None = None) -> WorktreeMerge:
        """Bring the changes into the project's files, all but those with conflicts, and remove what is merged whole.

        Raises:
            PanpanError: As for `plan_merge`, or something else would be done now, or a file cannot be written: all
                files are as they were then.
        """
        async with self._worktrees.lock:
            worktree = self._idle(agent_id)
            plan = await self._plan(worktree)
            if only is not None and plan.report.id != only:
                raise ToolError(
                    "files changed while the user was asked, so this merge would differ from the one "
                    "that was allowed; no file was changed",
                    advice="make the call again",
                )
            with anyio.CancelScope(shield=True):  # half of it would be neither state
                await self._merging(worktree).apply(plan, worktree)
                if plan.report.is_whole:
                    await self._worktrees.clear(worktree)
            return plan.report

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

    async def _plan(self, worktree: Worktree) -> MergePlan:
        found = await self._worktrees.compare(worktree)
        unknown = sorted({one.path for one in found.files} - set(worktree.changed))
        if unknown:  # the user was not asked about these
            named = ", ".join(unknown[:_TOLD])
            raise ToolError(f"more files of the worktree have changed since it was last looked at: {named}; try again")
        try:
            return await self._merging(worktree).plan(found.base, found.now, found.left, worktree)
        except OSError as error:
            raise ToolError(f"the merge cannot be planned: {error.strerror}") from error

    def _merging(self, worktree: Worktree) -> Merging:
        index = worktree.top.with_name(f"{worktree.top.name}.merge-index")
        return Merging(self._worktrees.repository(worktree.project_top), index, self._worktrees.limits)


def _id(changes: Sequence[Difference], conflicts: dict[str, str]) -> str:
    data = repr([(one.path, one.before, one.after) for one in changes]) + repr(sorted(conflicts))
    return blake2b(data.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _told(changes: Sequence[Difference], contents: Mapping[str, bytes], worktree: Worktree) -> Sequence[FileDiff]:
    """Return diffs of text, and counts for the rest."""
    diffs = []
    for one in changes:
        path = display_path(one.path, worktree)
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
