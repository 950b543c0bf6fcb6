"""Snapshots of the folders of a session's workspace.

The rule: nothing fails for a snapshot. One that cannot be taken is missing, and the user is told once.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from panpan.capabilities.snapshots.history import Trees
from panpan.config.locations import project_slug, snapshots_folder
from panpan.config.trust import wide_root
from panpan.core.hooks import ToolCall
from panpan.errors import PanpanError, SnapshotError, ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Snapshot, differences, list_changes
from panpan.file_trees.store import SnapshotStore, TooLargeError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.types.dataclass import dataclass
from panpan.types.events import FileChange

log = logging.getLogger(__name__)

_GC_S = 600.0
_MAX_PATH_CHARS = 200
_MOST_NAMED = 3
"""Most that is named in one sentence of what is left out."""


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
        holding = [main, *(other for other in others if not wide_root(other))]
        apart = [one for one in others if not any(one != other and one.is_relative_to(other) for other in holding)]
        return list(dict.fromkeys(root for root in (main, *apart) if root not in self.hidden))


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

    async def take(self, folders: Iterable[Path] | None = None) -> dict[Path, Snapshot]:
        """Return the folders, all if not given, as they are now; one that cannot be kept is missing."""
        taken: dict[Path, Snapshot] = {}
        for root in self.folders if folders is None else folders:
            if root in self._too_large:
                continue
            try:
                if wide := wide_root(root):
                    raise TooLargeError(f"{root} is {wide}")
                taken[root] = await self.store(root).take()
            except TooLargeError as error:
                self._too_large.add(root)
                self.tell(
                    f"/undo is off: {error}" if not self.prefix(root) else f"/undo does not cover all folders: {error}"
                )
            except SnapshotError as error:
                self.tell(f"changes from now on cannot be undone, since the snapshot failed: {error}")
            except Exception as error:  # no call fails because of a snapshot, not even after a bug in panpan
                log.exception("a snapshot could not be taken")
                self.tell(
                    f"changes from now on cannot be undone, since the snapshot failed: {type(error).__name__} "
                    "(fault in panpan; see the log)"
                )
        return taken

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
