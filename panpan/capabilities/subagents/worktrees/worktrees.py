"""The worktrees of subagents: made outside the project, compared with how they began, merged, removed.

The rule: the project's files change by a merge alone, and of its repository nothing but the entry of the worktree,
which goes again. What an agent changed is never thrown away unless somebody says so.
"""

import fcntl
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.capabilities.subagents.worktrees.worktree import (
    Worktree,
    WorktreeRecords,
    display_path,
    orphaned_worktrees,
    remove_tree,
)
from panpan.errors import PanpanError, ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.listed_files import copy_files, keep_files, keep_snapshot, list_files, read_snapshot
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Difference, Snapshot, differences, list_changes, names
from panpan.system.files.atomic_write import is_temporary_name
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.file_lock import is_locked
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.git.git_places import common_folder
from panpan.system.git.worktrees import add_worktree, forget_worktree, repository_around
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange

_NOT_MERGED = "it is a repository of its own, which is not merged"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A worktree by now, and how it began."""

    base: Snapshot
    now: Snapshot
    files: Sequence[Difference]
    left: Mapping[str, str]
    """Reasons why something can be neither compared nor merged, by path."""

    @property
    def is_changed(self) -> bool:
        """True if something would be lost with the worktree."""
        return bool(self.files or self.left)


class Worktrees:
    """The worktrees of one project."""

    def __init__(self, root: Path, folder: Path, kept: Path, limits: KeepLimits | None = None) -> None:
        self._root = root
        self._records = WorktreeRecords(folder)
        self._kept = kept
        self.limits = limits or KeepLimits()
        self.lock = anyio.Lock()
        """Held while a worktree is compared, merged or removed."""
        self._held: dict[str, int] = {}
        """Descriptors whose locks tell other panpans that a worktree is in use."""
        self._tidied: set[str] = set()
        """Subagents whose leftovers are being looked at."""

    def find(self, agent_id: str) -> Worktree | None:
        """Take up the worktree of a subagent; None: it has none, or another panpan uses it."""
        worktree = self._records.read(agent_id)
        if worktree is None or not worktree.base or not worktree.top.is_dir() or agent_id in self._tidied:
            return None
        return worktree if agent_id in self._held or self._hold(agent_id, worktree.top) else None

    async def make(self, agent_id: str) -> Worktree:
        """Make a worktree with the user's present files, changes without a commit and new files among them.

        What git ignores is not in it, nor what is in submodules and other repositories in the project, nor what is too
        large; `Worktree.left_out` names these.

        Raises:
            PanpanError: The project is in no git repository with a commit, is too large, or the subagent has one.
        """
        repository = await repository_around(self._root)
        if is_below(canonical_path(self._records.folder), repository.top):
            raise ToolError(
                f"a worktree must be outside the repository {repository.top}, and panpan's home is in it; the "
                "variable PANPAN_HOME can name another place"
            )
        top = self._records.place(agent_id, "")
        await to_thread.run_sync(self._claim, agent_id, top)
        inside = str(self._root.relative_to(repository.top))
        worktree = Worktree(agent_id, top, "" if inside == "." else inside, repository.top, repository.head)
        try:
            self._records.write(worktree)  # first, so that a crash leaves no unknown worktree
            async with self.lock:
                await add_worktree(repository, top)
            return await self._fill(worktree)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                with suppress(PanpanError, OSError):  # the next `tidy` tries again
                    await self.clear(worktree)
            if isinstance(error, OSError):
                raise ToolError(f"the worktree could not be made: {error.strerror}") from error
            raise

    async def changes(self, worktree: Worktree) -> Sequence[FileChange]:
        """Return the changes in a worktree, by paths for the user."""
        async with self.lock:
            found = await self.compare(worktree)
        return [
            FileChange(display_path(one.path, worktree), one.kind, one.added, one.deleted)
            for one in list_changes(found.files)
        ]

    async def remove(self, worktree: Worktree, *, with_changes: bool = False) -> bool:
        """Remove a worktree and its entry in the user's repository; return False if it holds changes and stays."""
        async with self.lock:
            if not with_changes and worktree.top.is_dir() and (await self.compare(worktree)).is_changed:
                return False
            await self.clear(worktree)
        return True

    async def leftovers(self) -> Sequence[Worktree]:
        return await to_thread.run_sync(orphaned_worktrees, self._records.folder)

    async def tidy(self) -> Sequence[Worktree]:
        """Remove the leftovers in which nothing was changed, and return the others."""
        changed = []
        for worktree in await self.leftovers():
            agent_id, is_there = worktree.agent_id, worktree.top.is_dir()
            if agent_id in self._held or (is_there and not self._hold(agent_id, worktree.top)):
                continue  # another process has just resumed it
            self._tidied.add(agent_id)
            try:
                if not await self.remove(worktree, with_changes=not worktree.base):
                    changed.append(worktree)
            except (PanpanError, OSError):
                changed.append(worktree)  # for the user to look at
            finally:
                self._tidied.discard(agent_id)
                self._let_go(agent_id)
        return changed

    async def unmerged(self) -> Sequence[str]:
        """Return the subagents whose worktrees are in use here and hold changes, or cannot be compared."""
        found = list[str]()
        for worktree in filter(None, map(self._records.read, sorted(set(self._held) - self._tidied))):
            try:
                async with self.lock:
                    is_changed = bool(worktree.base) and (await self.compare(worktree)).is_changed
            except PanpanError:
                is_changed = True
            found += [worktree.agent_id] if is_changed else []
        return found

    async def aclose(self) -> None:
        """Remove those without changes, as after an interrupt, and let go of the others."""
        try:
            for worktree in filter(None, map(self._records.read, list(self._held))):
                if worktree.base and not worktree.changed:
                    with suppress(PanpanError, OSError):  # the next `tidy` tries again
                        await self.remove(worktree)
        finally:
            self.close()

    def close(self) -> None:
        for agent_id in list(self._held):
            self._let_go(agent_id)

    def _claim(self, agent_id: str, top: Path) -> None:
        make_private_folder(top.parent)
        try:
            top.mkdir(mode=0o700)
        except FileExistsError as error:
            if is_locked(top):
                raise ToolError(
                    f"the worktree of the subagent {agent_id} is in use by another panpan, which has the same session "
                    "or a fork of it; wait until it is closed there, or start a new subagent"
                ) from error
            raise ToolError(f"the subagent {agent_id} has a worktree already") from error
        self._hold(agent_id, top)

    def _hold(self, agent_id: str, top: Path) -> bool:
        """Lock a worktree; return False if another panpan uses it."""
        try:
            fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        except OSError:
            pass  # a file system without locks
        self._held[agent_id] = fd
        return True

    def _let_go(self, agent_id: str) -> None:
        if (fd := self._held.pop(agent_id, None)) is not None:
            os.close(fd)

    async def _fill(self, worktree: Worktree) -> Worktree:
        copied, left_out = await copy_files(worktree.project_top, worktree.top, self.limits)
        repository = self.repository(worktree.top)
        async with self.lock:
            base = await keep_files(repository, self._records.place(worktree.agent_id, ".index"), copied, self.limits)
            id_ = await keep_snapshot(repository, base, worktree.reference)
        worktree = replace(worktree, base=id_, left_out=left_out)
        await to_thread.run_sync(self._records.write, worktree)
        return worktree

    async def compare(self, worktree: Worktree) -> Comparison:
        """Compare a worktree with how it began, and record changed files; with the lock held."""
        repository = self.repository(worktree.top)
        found = await compare_worktree(
            repository, worktree, self._records.place(worktree.agent_id, ".index"), self.limits
        )
        changed = replace(worktree, changed=tuple(one.path for one in found.files))
        if changed != worktree:
            await to_thread.run_sync(self._records.write, changed)
        return found

    async def clear(self, worktree: Worktree) -> None:
        """Remove all of a worktree, whatever is in it; with the lock held. Each step may have been done before."""
        await to_thread.run_sync(remove_tree, worktree.top)
        if (worktree.project_top / ".git").exists():
            common = common_folder(worktree.project_top)
            await to_thread.run_sync(forget_worktree, common, canonical_path(worktree.top))
        repository = self.repository(worktree.project_top)
        if repository.folder.is_dir() and worktree.project_top.is_dir():
            await repository.run("update-ref", "-d", worktree.reference)
        self._records.forget(worktree.agent_id)
        self._let_go(worktree.agent_id)

    def repository(self, work_tree: Path) -> OwnRepository:
        """Return the repository with kept content, for a worktree or for the user's work tree."""
        return OwnRepository(self._kept, work_tree)


async def compare_worktree(
    repository: OwnRepository, worktree: Worktree, index: Path, limits: KeepLimits
) -> Comparison:
    """Compare a worktree with its beginning; new files count unless git ignores them, known ones always."""
    base = await read_snapshot(repository, worktree.base)
    found = await list_files(worktree.top)
    known = [*await names(repository, base.tree), *found.files]
    paths = [path for path in dict.fromkeys(known) if not is_temporary_name(path)]
    try:
        now = await keep_files(repository, index, paths, limits, usual=base.modes)
    except OSError as error:
        raise ToolError(f"the worktree {worktree.top} cannot be compared: {error.strerror}") from error
    files = [one for one in await differences(repository, base, now) if not one.is_folder]
    return Comparison(base, now, files, {**now.left_out, **dict.fromkeys(found.repositories, _NOT_MERGED)})
