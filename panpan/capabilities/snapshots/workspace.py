"""Snapshots of the folders of a session's workspace.

The rule: nothing fails for a snapshot. One that cannot be taken is missing, and the user is told once.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio

from panpan.capabilities.snapshots.history import Trees
from panpan.config.locations import project_slug, snapshots_folder
from panpan.config.trust import wide_root
from panpan.core.hooks import ToolCall
from panpan.errors import PanpanError, SnapshotError, ToolError
from panpan.file_trees.kept_files import KeepLimits, is_refused_by_git, read_folder_bits
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Entry, Snapshot, differences, entries, folders_above, list_changes
from panpan.file_trees.store import SnapshotStore, TooLargeError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange

log = logging.getLogger(__name__)

_VIEWS_OF_THE_KERNEL = (Path("/proc"), Path("/sys"))
"""Hold nothing that an undo could bring back, and take seconds to walk through."""
_GC_S = 600.0
_MAX_PATH_CHARS = 200
_MOST_NAMED = 3
"""Most that is named in one sentence of what is left out."""


def _unkept(root: Path) -> str:
    """Return a description of a folder of which no snapshot is taken; else an empty text."""
    if any(is_below(root, view) for view in _VIEWS_OF_THE_KERNEL):
        return "a view of the system's own state"
    return wide_root(root)


@dataclass(slots=True)
class SnapshotPlaces:
    """Folders of which snapshots are taken, and where they are kept; all are canonical."""

    home: Path
    """The panpan home."""
    session_id: str
    roots: Callable[[], Sequence[Path]]
    """Returns the folders of the workspace, the main one first."""
    hidden: Sequence[Path] = ()
    """Folders and files that are no part of the workspace, such as the folder for temporary files."""

    @property
    def folders(self) -> Sequence[Path]:
        """The main folder first, then those of the others that lie in no other one that can be kept."""
        main, *others = self.roots()
        holding = [main, *(other for other in others if not _unkept(other))]
        apart = [one for one in others if not any(one != other and one.is_relative_to(other) for other in holding)]
        return list(dict.fromkeys(root for root in (main, *apart) if root not in self.hidden))


@dataclass(frozen=True, slots=True)
class TakenStep:
    """A step of a turn that changed files."""

    before: Mapping[Path, Snapshot]
    after: Mapping[Path, Snapshot]
    files: Sequence[FileChange]


FilesByFolder: TypeAlias = Mapping[Path, Set[str]]
"""Paths of files by the folder of the workspace that they are in, and relative to it."""


class WorkspaceSnapshots:
    """Takes snapshots of a workspace; `warn` is told what the user should know, one sentence each."""

    def __init__(self, places: SnapshotPlaces, limits: KeepLimits, warn: Callable[[str], None]) -> None:
        self.lock = anyio.Lock()
        """Held by whoever takes snapshots, so that what follows from them is done before the next."""
        self._places = places
        self._limits = limits
        self._warn = warn
        self._stores: dict[Path, SnapshotStore] = {}
        self._too_large: set[Path] = set()
        self._told: set[str] = set()
        self._left_out: set[str] = set()
        """Files that the user knows to be left out."""

    @property
    def folders(self) -> Sequence[Path]:
        return self._places.folders

    async def take(self) -> dict[Path, Snapshot]:
        """Return the folders as they are now; one that cannot be kept is missing."""
        takes = {}
        for root in self.folders:
            if reason := _unkept(root):
                self._leave(root, f"{root} is {reason}")
            elif root not in self._too_large:
                takes[root] = self.store(root).take
        return await self._taken(takes)

    async def take_beside(self) -> None:
        """Keep the folders as they are now, at leisure until somebody waits for the lock, which the caller holds."""
        with ExitStack() as stack:
            for root in self.folders:
                repository = self.store(root).repository
                stack.enter_context(repository.giving_way(lambda: self.lock.statistics().tasks_waiting == 0))
            await self.take()

    async def take_again(self, earlier: Mapping[Path, Snapshot]) -> dict[Path, Snapshot]:
        """Return what earlier snapshots are about as it is now; what cannot be kept is missing."""
        return await self._taken({root: partial(self.store(root).take_again, one) for root, one in earlier.items()})

    async def take_files(self, files: FilesByFolder, earlier: Mapping[Path, Snapshot]) -> dict[Path, Snapshot]:
        """Return some files as they are now, beside those of earlier snapshots as they were then; git is not asked."""
        taken = await self._taken({root: partial(self.store(root).take_files, paths) for root, paths in files.items()})
        both = taken.keys() & earlier.keys()
        joined = {root: partial(self.store(root).join_files, earlier[root], taken[root]) for root in both}
        return {**taken, **earlier, **await self._taken(joined)}

    async def changes_across(self, steps: Sequence[TakenStep]) -> Sequence[FileChange]:
        """Return the changes of each file over several steps.

        Raises:
            SnapshotError: A snapshot cannot be read.
        """
        numbers: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            for file in step.files:
                numbers.setdefault(file.path, []).append(number)
        changes = [file for step in steps for file in step.files if len(numbers[file.path]) == 1]
        for root in dict.fromkeys(root for step in steps for root in step.before):
            again = {path: found for path, found in numbers.items() if len(found) > 1 and self._root_of(path) == root}
            if not again:
                continue
            prefix, store = self.prefix(root), self.store(root)
            before: dict[str, Entry] = {}
            after: dict[str, Entry] = {}
            for number, step in enumerate(steps):
                first = [path.removeprefix(prefix) for path, found in again.items() if found[0] == number]
                last = [path.removeprefix(prefix) for path, found in again.items() if found[-1] == number]
                if first and root in step.before:
                    before |= await entries(store.repository, step.before[root], first)
                if last and root in step.after:
                    after |= await entries(store.repository, step.after[root], last)
            only = frozenset(path.removeprefix(prefix) for path in again)
            changes += list_changes(await store.differences_of(before, after, only), prefix)
        return tuple(sorted(changes, key=lambda change: change.path))

    def _root_of(self, path: str) -> Path:
        """Return the folder that the path of a change belongs to."""
        main, *others = self.folders
        around = [root for root in others if path.startswith(f"{root}/")]
        return max(around, key=lambda one: len(one.parts), default=main)

    async def _taken(self, takes: Mapping[Path, Callable[[], Awaitable[Snapshot]]]) -> dict[Path, Snapshot]:
        taken: dict[Path, Snapshot] = {}
        for root, take in takes.items():
            try:
                taken[root] = await take()
            except TooLargeError as error:
                self._leave(root, str(error))
            except SnapshotError as error:
                self.tell(f"changes from now on cannot be undone, since the snapshot failed: {error}")
            except Exception as error:  # no call fails because of a snapshot, not even after a bug in panpan
                log.exception("a snapshot could not be taken")
                self.tell(
                    f"changes from now on cannot be undone, since the snapshot failed: {type(error).__name__} "
                    "(fault in panpan; see the log)"
                )
        return taken

    def _leave(self, root: Path, why: str) -> None:
        """Take no snapshot of a whole folder from now on, and tell the user."""
        self._too_large.add(root)
        covered = "edits alone, not commands" if not self.prefix(root) else "edits alone in one of the folders"
        self.tell(f"/undo covers {covered}: {why}")

    async def take_since(self, trees: Trees) -> dict[Path, Snapshot]:
        """Return what earlier snapshots are about as it is now; all of the folders if they cannot be read any more."""
        try:
            return await self.take_again(await self.load(trees))
        except SnapshotError:
            return await self.take()

    async def load(self, trees: Trees) -> dict[Path, Snapshot]:
        """Return earlier snapshots of folders of the workspace."""
        here = {str(root): root for root in self.folders}
        return {here[root]: await self.store(here[root]).load(id_) for root, id_ in trees.items() if root in here}

    async def changes(self, before: Mapping[Path, Snapshot], after: Mapping[Path, Snapshot]) -> Sequence[FileChange]:
        """Return the changes of each file."""
        changes: list[FileChange] = []
        for root in before.keys() & after.keys():
            found = await differences(self.store(root).repository, before[root], after[root])
            changes += list_changes(found, self.prefix(root))
        return tuple(sorted(changes, key=lambda change: change.path))

    def is_elsewhere(self, call: ToolCall) -> bool:
        """True if a call changes files alone, and none of the workspace, as in plan mode that of the plan."""
        places = list(map(Path, call.effects.writes)) if call.tool.notes_changes else []
        if not places or not all(place.is_absolute() for place in places):
            return False
        try:
            return not any(is_below(canonical_path(place), root) for place in places for root in self.folders)
        except ToolError:
            return False

    def named_files(self, call: ToolCall) -> FilesByFolder | None:
        """Return the files of the workspace that a call may change, if it says so of each; None if they are not known.

        With them come the folders that it would make, each with a slash at its end.
        """
        if not (call.tool.notes_changes and call.effects.only_changes_files):
            return None
        found: dict[Path, set[str]] = {}
        try:
            for written in (*call.effects.writes, *call.effects.deletes):
                place = canonical_path(Path(call.context.paths.absolute(written)))
                around = [root for root in self.folders if is_below(place, root)]
                root = max(around, key=lambda one: len(one.parts), default=None)
                if root is None:
                    continue
                if place.is_dir() or place == root:
                    return None
                path = str(place.relative_to(root))
                if not is_refused_by_git(path) and not self.store(root).is_hidden(path):
                    missing = [one for one in folders_above(path) if read_folder_bits(root, one) is None]
                    found.setdefault(root, set()).update((path, *missing))
        except (ToolError, OSError):
            return None
        return {root: frozenset(paths) for root, paths in found.items()}

    def prefix(self, root: Path) -> str:
        """Return the beginning of the paths of a folder: nothing for the main one."""
        return "" if root == self.folders[0] else f"{root}/"

    def store(self, root: Path) -> SnapshotStore:
        if root not in self._stores:
            main, hidden = self.folders[0], (self._places.home, *self._places.hidden)
            place = snapshots_folder(self._places.home, root)
            if root != main and main.is_relative_to(root):  # the main folder's own store covers what is inside it
                place, hidden = place.with_name("snapshots_around") / project_slug(main), (*hidden, main)
            repository = OwnRepository(place, root)
            self._stores[root] = SnapshotStore(repository, self._places.session_id, self._limits, hidden)
        return self._stores[root]

    async def tidy(self, *, loose: int = 2_000, joins_packs: bool = True) -> None:
        """Let git pack what is kept; nothing is ever dropped.

        Args:
            loose: Objects in files of their own, by git's estimate, that are enough for that.
            joins_packs: Whether many packs become one, which may take long.
        """
        settings = [f"gc.auto={loose}", *(() if joins_packs else ("gc.autoPackLimit=0",))]
        for store in list(self._stores.values()):
            with suppress(PanpanError):  # an untidy store works as well
                await store.repository.run("gc", "--auto", "--quiet", settings=settings, timeout_s=_GC_S)

    def tell(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self._told:
            self._told.add(text)
            self._warn(text)

    def warn_left_out(self, taken: Mapping[Path, Snapshot]) -> None:
        """Tell the user what of the workspace no undo brings back, of each file or folder once."""
        found = [(self.prefix(root) + path, why) for root, one in taken.items() for path, why in one.left_out.items()]
        left_out = [(path, why) for path, why in found if path not in self._left_out]
        self._left_out.update(path for path, _ in left_out)
        named = [f"{_shortened(path)} ({why})" for path, why in left_out[:_MOST_NAMED]]
        if len(left_out) > _MOST_NAMED:
            named.append(f"{len(left_out) - _MOST_NAMED:,} more")
        if named:
            self._warn(f"/undo does not cover {', '.join(named)}")


def _shortened(path: str) -> str:
    return path if len(path) <= _MAX_PATH_CHARS else f"{path[: _MAX_PATH_CHARS // 2]}…{path[-_MAX_PATH_CHARS // 2 :]}"


def trees_of(snapshots: Mapping[Path, Snapshot]) -> Trees:
    """Return the ids of snapshots by folder, as a log has them."""
    return {str(root): snapshot.id for root, snapshot in snapshots.items()}
