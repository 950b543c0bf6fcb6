"""The snapshots of one folder: taking them, in a repository of panpan's own.

git finds what changed since the last time, by an index that belongs to this session alone, so that two panpans never
wait for each other: what they share is objects, which git adds without locks. What git would not enter or keep, such as
repositories in the folder and permission bits, is added here.
"""

import os
import time
from collections.abc import Iterable, Set
from functools import partial
from pathlib import Path
from shutil import copy2

from anyio import to_thread

from panpan.errors import PanpanError, SnapshotError, ToolError
from panpan.services.snapshots.finding import FileFinder, paths_in
from panpan.services.snapshots.kept_files import (
    MAX_IGNORED_BYTES,
    MAX_IGNORED_FILES,
    KeepLimits,
    Looked,
    bare_repositories,
    look_at,
    without_folders,
)
from panpan.services.snapshots.modes import Modes, modes_of
from panpan.services.snapshots.snapshot import Snapshot, message_of, snapshot_from
from panpan.system.own_repository import OwnRepository, TooMuchError

_TRIES = 3
"""How often a snapshot is begun anew where files change while they are read."""
_MANY_FILES = 500
"""From so many new files on they go into one pack, and not each into a file of its own."""
_INDEX_AGE_S = 7 * 86_400
"""An index only makes the next snapshot faster."""
_FIRST_S = 600.0
"""For adding the files of the first snapshot."""


class TooLargeError(SnapshotError):
    """The folder holds more than is kept; the next try would not change that."""


class SnapshotStore:
    """Takes snapshots of one folder.

    Args:
        repository: Where they are kept; its work tree is the folder.
        session_id: Whose they are.
        limits: How much is kept.
        hidden: Folders that are not looked at, canonical, such as the panpan home.
    """

    def __init__(
        self, repository: OwnRepository, session_id: str, limits: KeepLimits, hidden: Iterable[Path] = ()
    ) -> None:
        self.repository = repository
        self.root = repository.work_tree
        self._limits = limits
        self._index = repository.folder / "indexes" / session_id
        self._finder = FileFinder(repository, self._index, limits.max_listing_bytes, hidden)
        self._reference = f"refs/sessions/{session_id}"
        self._bits: dict[str, int | None] | None = None
        """Permission bits of all files that are kept, None for links; None: nothing is known yet."""
        self._modes: Modes | None = None
        self._recent: list[str] = []
        """Files whose permission bits are to be looked at again."""
        self._left_out: dict[str, str] = {}
        self._newest: Snapshot | None = None
        self._is_whole = False
        """Whether the newest snapshot holds all that the index does; not so where one failed half-way."""

    async def take(self) -> Snapshot:
        """Return the folder as it is now.

        Raises:
            TooLargeError: It holds too much.
            SnapshotError: It could not be kept.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._take()
            except TooLargeError:
                raise
            except TooMuchError as error:
                raise TooLargeError(f"{self.root} is too large: {error}") from error
            except PanpanError as error:  # a file may have gone or changed while git read it
                if not tries_left:
                    raise SnapshotError(str(error)) from error
            except OSError as error:
                raise SnapshotError(f"{error.strerror}: {self.repository.folder}") from error
        raise AssertionError("unreachable")

    async def load(self, id_: str) -> Snapshot:
        """Return an earlier snapshot.

        Raises:
            SnapshotError: It is not there, or is none.
        """
        try:
            return snapshot_from(id_, await self.repository.run("cat-file", "commit", id_))
        except (ToolError, ValueError, KeyError) as error:
            raise SnapshotError(f"the snapshot {id_[:12]} of {self.root} cannot be read: {error}") from error

    async def _take(self) -> Snapshot:
        bits = self._bits if self._bits is not None else await self._begin()
        changed, new = await self._finder.find()
        again = await to_thread.run_sync(look_at, self.root, self._recent, self._limits)
        changed += [path for path, mode in again.bits.items() if bits.get(path, mode) != mode and path not in changed]
        found = await to_thread.run_sync(look_at, self.root, [*changed, *new], self._limits)
        await self._leave_out(found, new, len(bits))
        self._recent = [path for path in {*again.recent, *found.recent} if path in bits or path in found.bits]
        before = self._newest
        is_same = self._is_whole and not changed and not found.bits and before and before.left_out == self._left_out
        if before is not None and is_same:
            return before
        self._is_whole = False
        await self._update_index(found, set(changed), len(new))
        modes = self._note_bits(found, bits)
        tree = (await self.repository.run("write-tree", index=self._index)).decode().strip()
        if before is None or (before.tree, before.modes, before.left_out) != (tree, modes, self._left_out):
            message = message_of(modes, self._left_out)
            id_ = await self._commit(tree, message, before.id if before else None)
            self._newest = Snapshot(id_, tree, modes, dict(self._left_out))
        assert self._newest is not None
        self._is_whole = True
        return self._newest

    def _note_bits(self, found: Looked, bits: dict[str, int | None]) -> Modes:
        """Take note of what git knows by now, and return the permission bits of all files."""
        gone = [*found.gone, *found.left_out]
        for path in gone:
            bits.pop(path, None)
        bits |= found.bits
        gone += [path for path, mode in found.bits.items() if mode is None]
        self._modes = self._modes.changed(_of_files(found), gone) if self._modes else modes_of(_of_files(found))
        return self._modes

    async def _begin(self) -> dict[str, int | None]:
        """Make the repository, and go on from the newest index that there is."""
        await to_thread.run_sync(self.repository.prepare)
        await to_thread.run_sync(self._take_over_index)
        known = paths_in(await self.repository.run("ls-files", "-z", index=self._index))
        found = await to_thread.run_sync(look_at, self.root, known, self._limits)
        self._bits, self._recent = found.bits, found.recent
        self._modes = modes_of(_of_files(found)) if found.bits else None
        return found.bits

    def _take_over_index(self) -> None:
        folder = self._index.parent
        folder.mkdir(mode=0o700, exist_ok=True)
        self._finder.prepare()
        for place in folder.iterdir():
            if place.stat().st_mtime < time.time() - _INDEX_AGE_S:
                place.unlink(missing_ok=True)
        others = [place for place in folder.iterdir() if not place.suffix and place != self._index]
        newest = max(others, key=lambda place: place.stat().st_mtime, default=None)
        if newest is not None and not self._index.exists():
            copy2(newest, self._index)  # with its time, by which git tells what changed in the second it was written

    async def _leave_out(self, found: Looked, new: list[str], known: int) -> None:
        """Take from `found` what is too much, and remember what is left out."""
        here = {place: why for place, why in self._left_out.items() if place.endswith("/")}
        folders = [(place, "it is a repository without files") for place in bare_repositories(self.root, new)]
        new_bytes = sum(found.sizes.get(path, 0) for path in new)
        if len(new) > MAX_IGNORED_FILES or new_bytes > MAX_IGNORED_BYTES:
            heavy = await self._finder.heavy_folders(found.sizes, new)
            folders += [(place, "it is ignored by git, and large") for place in heavy]
        if folders:
            here |= dict(folders)
            self._finder.close([place for place, _ in folders])
            kept = set(without_folders([*found.bits, *found.left_out], [place for place, _ in folders]))
            found.bits = {path: mode for path, mode in found.bits.items() if path in kept}
            found.left_out = {path: why for path, why in found.left_out.items() if path in kept}
            new[:] = [path for path in new if path in kept]
        self._left_out = here | found.left_out
        if known + len(new) > self._limits.max_files:
            raise TooLargeError(f"{self.root} holds more than {self._limits.max_files:,} files")
        if sum(found.sizes.get(path, 0) for path in new) > self._limits.max_new_bytes:
            raise TooLargeError(f"{self.root} holds more than {self._limits.max_new_bytes // 1_000_000:,} MB of files")

    async def _update_index(self, found: Looked, known: Set[str], new: int) -> None:
        self._index.with_name(f"{self._index.name}.lock").unlink(missing_ok=True)  # of a git that was killed
        update = partial(self.repository.run, "update-index", "-z", index=self._index, timeout_s=_FIRST_S)
        if dropped := [path for path in (*found.gone, *found.left_out) if path in known]:
            await update("--force-remove", "--stdin", stdin=_joined(dropped))
        if found.bits:
            settings = ["core.bigFileThreshold=0"] if new > _MANY_FILES else []
            options = ("--add", "--remove", "--replace", "--stdin")
            await update(*options, stdin=_joined(found.bits), settings=settings)

    async def _commit(self, tree: str, message: bytes, parent: str | None) -> str:
        """Keep a tree for good: what no reference leads to would be swept away some day."""
        if parent is None:
            found = await self.repository.run("rev-parse", "--verify", "--quiet", self._reference, accepted=(0, 1))
            parent = found.decode().strip() or None
        parents = ("-p", parent) if parent else ()
        made = await self.repository.run("commit-tree", tree, *parents, "-F", "-", stdin=message)
        id_ = made.decode().strip()
        await to_thread.run_sync(self.repository.point, self._reference, id_)
        return id_


def _of_files(found: Looked) -> dict[str, int]:
    return {path: mode for path, mode in found.bits.items() if mode is not None}


def _joined(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
