"""Taking the snapshots of one folder, in a repository of panpan's own.

git finds what changed since the last time, by an index that belongs to this session alone, so that two panpans never
wait for each other: what they share is objects, which git adds without locks. What git would not enter or keep, such as
repositories in the folder and permission bits, is added here.

The second look at a folder of few files, and the later ones, take no process: panpan finds and keeps what changed. The
index is brought up to date when git is needed again.
"""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from shutil import copy2
from typing import Any, TypeVar

from anyio import to_thread

from panpan.errors import PanpanError, SnapshotError, ToolError
from panpan.file_trees.kept_files import (
    MAX_IGNORED_BYTES,
    MAX_IGNORED_FILES,
    BehindLinks,
    FileFinder,
    FileState,
    KeepLimits,
    PathStates,
    bare_repositories,
    environments,
    paths_in,
    read_folder_bits,
    stat_paths,
    without_folders,
)
from panpan.file_trees.own_repository import OwnRepository, TooMuchError
from panpan.file_trees.snapshot import (
    Difference,
    Entry,
    Modes,
    Snapshot,
    all_folders_above,
    commit_of,
    differences,
    folder_of,
    git_mode,
    message_of,
    modes_of,
    snapshot_from,
)
from panpan.file_trees.writing import contents_of, require_own_place
from panpan.system.files.atomic_write import remove_leftovers
from panpan.system.files.read_file import read_regular_file
from panpan.system.sandbox.profile import is_placeholder


class KeptFolders:
    """The folders of the canonical `root` in which the files at `paths` are kept, and the empty ones beside them."""

    def __init__(self, root: Path, paths: Iterable[str] = ()) -> None:
        self.bits: dict[str, int] = {}
        """Permission bits of each folder that is there."""
        self.empty: frozenset[str] = frozenset()
        """Folders in which no file is kept, however deep."""
        self._root = root
        self._files = Counter(map(folder_of, paths))
        """Number of files kept right in a folder."""

    def note(self, added: Iterable[str], gone: Iterable[str]) -> None:
        """Take note of files that are kept from now on, and of those that no longer are."""
        self._files.update(map(folder_of, added))
        self._files.subtract(map(folder_of, gone))

    def look(self, seen: Iterable[str]) -> None:
        """Look at all folders that are known or `seen`, but for what a box that runs has put there."""
        direct = [folder for folder, count in self._files.items() if count > 0 and folder]
        held = {*direct, *all_folders_above(direct)}
        bits, behind_links = {}, BehindLinks(self._root)
        for folder in {*held, *self.empty, *seen}:
            if folder not in held and folder_of(folder)[:-1] in behind_links:
                continue
            try:
                status = os.lstat(f"{self._root}/{folder[:-1]}")
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode) and (folder in held or not is_placeholder(f"{self._root}/{folder[:-1]}")):
                bits[folder] = stat.S_IMODE(status.st_mode)
        self.bits, self.empty = bits, frozenset(bits.keys() - held)


_TRIES = 3
"""Times that a snapshot is begun again where files change while they are read."""
_MANY_FILES = 500
"""Number of new files from which on they go into one pack, and not each into a file of its own."""
_FILES_AT_ONCE = 2_000
"""Number of files that one git adds: many make it slow, and so do many packs, since each git makes one."""
_FEW_FILES = 2_000
"""Number of files up to which panpan looks at each of them sooner than git could."""
_INDEX_AGE_S = 7 * 86_400
"""An index only makes the next snapshot faster."""
_FIRST_S = 600.0
"""Time for adding the files of the first snapshot."""


_Done = TypeVar("_Done")


class TooLargeError(SnapshotError):
    """The folder holds more than is kept; the next try would not change that."""


class SnapshotStore:
    """Takes snapshots of the folder that is the work tree of a repository.

    Canonical folders and files that are `hidden`, such as the panpan home, are not looked at.
    """

    def __init__(
        self, repository: OwnRepository, session_id: str, limits: KeepLimits, hidden: Iterable[Path] = ()
    ) -> None:
        self.repository = repository
        self.root = repository.work_tree
        self._limits = limits
        self._index = repository.folder / "indexes" / session_id
        self._finder = FileFinder(repository, self._index, limits, hidden)
        self._reference = f"refs/sessions/{session_id}"
        self._bits: dict[str, int | None] = {}
        """Permission bits of all files that are kept, None for links."""
        self._folders = KeptFolders(self.root)
        self._modes: Modes | None = None
        self._recent: list[str] = []
        """Files whose permission bits are to be looked at again."""
        self._states: dict[str, FileState] = {}
        """States in which files and links were kept, as far as another change would show in them."""
        self._entries: dict[str, tuple[str, str]] | None = None
        """Mode and id in git of all files that are kept, if they are few; None: git finds and keeps what changed."""
        self._not_in_index: set[str] = set()
        """Files of which the index does not know the newest state."""
        self._left_out: dict[str, str] = {}
        self._closed: dict[str, str] = {}
        """Reasons why folders are not looked into any more."""
        self._newest: Snapshot | None = None
        self._newest_of_files: str | None = None
        """Commit of the newest snapshot of some files."""
        self._is_whole = False
        """True if the newest snapshot holds all that the index does; not so where one failed half-way."""

    async def take(self, also: Set[str] = frozenset(), *, since: Snapshot | None = None) -> Snapshot:
        """Return the folder as it is now; `since` itself if nothing has changed.

        Args:
            also: Paths of files, and of folders with a slash, that are kept although they lie in a folder that is not.
            since: An earlier snapshot.

        Raises:
            TooLargeError: It holds too much.
            SnapshotError: It could not be kept.
        """
        whole = await self._take_whole()
        apart = {path for path in also if whole.why_left_out(path)}
        return await self._joined_with(whole, apart, since) if apart else whole

    async def _joined_with(self, whole: Snapshot, paths: Set[str], since: Snapshot | None) -> Snapshot:
        some = await self.take_files(paths)
        also = frozenset(paths - some.left_out.keys())
        found = {path: entry for path, entry in some.files.items() if path in also}
        files = {path: (git_mode(one.mode), one.oid) for path, one in found.items() if not path.endswith("/")}
        modes = whole.modes.changed({path: one.mode for path, one in found.items() if one.mode is not None})
        empty = whole.empty | (some.empty & also)
        try:
            tree = await self.repository.changed_tree(whole.tree, files)
            if since is not None and (since.tree, since.modes, since.left_out, since.empty, since.also) == (
                tree,
                modes,
                whole.left_out,
                empty,
                also,
            ):
                return since
            message = message_of(modes, whole.left_out, empty, also=also)
            id_ = await to_thread.run_sync(self._keep_beside, tree, message)
        except ToolError as error:
            raise SnapshotError(str(error)) from error
        except OSError as error:
            raise SnapshotError(f"{error.strerror}: {error.filename or self.repository.folder}") from error
        return Snapshot(id_, tree, modes, whole.left_out, empty, also=also)

    async def _take_whole(self) -> Snapshot:
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._take()
            except TooLargeError:
                raise
            except TooMuchError as error:
                raise TooLargeError(f"{self.root} is too large: {error}") from error
            except PanpanError as error:  # a file may have been deleted or changed while git read it
                if not tries_left:
                    raise SnapshotError(str(error)) from error
            except OSError as error:
                raise SnapshotError(f"{error.strerror}: {self.repository.folder}") from error
        raise AssertionError("unreachable")

    def is_hidden(self, path: str) -> bool:
        """True if a path is hidden, or in a folder that is."""
        return self._finder.is_hidden(path)

    async def take_files(self, paths: Set[str], *, since: Snapshot | None = None) -> Snapshot:
        """Return a snapshot that is about some files only, without asking git; `since` itself if nothing has changed.

        Args:
            paths: Paths of files, relative to the folder and free of links, and of the folders above that are to be
                compared, too, each with a slash at its end.
            since: An earlier snapshot of some files. What it is about is in the new one, too.

        Raises:
            SnapshotError: They could not be kept.
        """
        try:
            return await to_thread.run_sync(self._take_files, paths, since)
        except OSError as error:
            raise SnapshotError(f"{error.strerror}: {error.filename or self.repository.folder}") from error
        except PanpanError as error:
            raise SnapshotError(str(error)) from error

    async def join_files(self, one: Snapshot, other: Snapshot) -> Snapshot:
        """Return a snapshot of the files of two that this process has taken; what both have is as in the first.

        Raises:
            SnapshotError: It could not be kept.
        """
        first = one.only or frozenset()
        only, left_out = first | (other.only or frozenset()), {**other.left_out, **one.left_out}
        entries = {**{path: entry for path, entry in other.files.items() if path not in first}, **one.files}
        try:
            return await to_thread.run_sync(self._kept_files, entries, left_out, only)
        except OSError as error:
            raise SnapshotError(f"{error.strerror}: {error.filename or self.repository.folder}") from error

    async def take_again(self, earlier: Snapshot) -> Snapshot:
        """Return what an earlier snapshot is about as it is now; raises what `take` does."""
        if earlier.only is None:
            return await self.take(earlier.also, since=earlier)
        return await self.take_files(frozenset(), since=earlier)

    async def load(self, id_: str) -> Snapshot:
        """Return an earlier snapshot.

        Raises:
            SnapshotError: It is not there, or is none.
        """
        return (await self.load_all([id_]))[0]

    async def load_all(self, ids: Sequence[str]) -> Sequence[Snapshot]:
        """Return earlier snapshots.

        Raises:
            SnapshotError: One is not there, or is none.
        """
        if not ids:
            return []
        try:
            commits = await contents_of(self.repository, ids)
        except ToolError as error:
            raise SnapshotError(f"the snapshots of {self.root} cannot be read: {error}") from error
        return [self._loaded(id_, commits.get(id_)) for id_ in ids]

    def _loaded(self, id_: str, commit: bytes | None) -> Snapshot:
        try:
            if commit is None:
                raise ValueError("it is not there")
            return snapshot_from(id_, commit)
        except (ValueError, KeyError) as error:
            raise SnapshotError(f"the snapshot {id_[:12]} of {self.root} cannot be read: {error}") from error

    def remove_leftovers(self) -> None:
        """Remove what panpans that were killed have left in the folder while they wrote files; no snapshot has it."""
        for folder in self._finder.leavings:
            remove_leftovers(self.root / folder)

    async def _take(self) -> Snapshot:
        require_own_place(self.root)
        before, was_whole, self._is_whole = self._newest, self._is_whole, False
        if not was_whole:
            await self._begin()
        changed, found, folders = await self._look()
        dropped = [path for path in (*found.gone, *found.left_out) if path in changed]
        modes = await self._aside(self._note, found, folders)
        has_changed = bool(dropped or found.bits or not was_whole)
        if before is not None and not has_changed and self._is_still(before, modes):
            self._is_whole = True
            return before
        tree = await self._tree(dropped, found.bits) if has_changed or before is None else before.tree
        if before is None or before.tree != tree or not self._is_still(before, modes):
            message = message_of(modes, self._left_out, self._folders.empty)
            id_ = await self._commit(tree, message, before.id if before else None)
            before = Snapshot(id_, tree, modes, dict(self._left_out), self._folders.empty)
        self._newest, self._is_whole = before, True
        return before

    async def _tree(self, dropped: Sequence[str], kept: Mapping[str, int | None]) -> str:
        """Keep the files that changed, and return the tree of all."""
        if self._entries is not None and len(self._bits) <= _FEW_FILES and len(kept) <= _MANY_FILES:
            return await to_thread.run_sync(self._changed_tree, self._entries, dropped, kept)
        changed = dict.fromkeys((*self._not_in_index, *dropped, *kept))  # in the order of the walk, which git likes
        if changed:
            gone = [path for path in changed if path not in self._bits]
            await self._update_index(gone, [path for path in changed if path in self._bits])
            self._not_in_index.clear()
        tree, self._entries = await self.repository.write_tree(self._index), None
        if len(self._bits) <= _FEW_FILES:
            self._entries = _staged(await self.repository.run("ls-files", "--stage", "-z", index=self._index))
        return tree

    def _changed_tree(
        self, entries: dict[str, tuple[str, str]], dropped: Sequence[str], kept: Mapping[str, int | None]
    ) -> str:
        files = {path: (git_mode(mode), self._add(path, mode)) for path, mode in kept.items()}
        changed = {path: file for path, file in files.items() if entries.get(path) != file}
        self._not_in_index.update(dropped, changed)
        for path in dropped:
            entries.pop(path, None)
        entries |= changed
        return self.repository.add_tree(entries)

    def _take_files(self, paths: Set[str], since: Snapshot | None) -> Snapshot:
        require_own_place(self.root)
        self.repository.prepare()
        only = frozenset(paths) | (since.only if since is not None and since.only is not None else frozenset())
        files = [path for path in only if not path.endswith("/")]
        found = stat_paths(self.root, files, self._limits)
        entries = {path: Entry(self._add(path, mode), mode) for path, mode in found.bits.items()}
        for folder in all_folders_above(files):
            if (bits := read_folder_bits(self.root, folder)) is not None:
                entries[folder] = Entry("", bits)
        return self._kept_files(entries, found.left_out, only, since)

    def _kept_files(
        self, entries: Mapping[str, Entry], left_out: Mapping[str, str], only: Set[str], since: Snapshot | None = None
    ) -> Snapshot:
        """Return a snapshot of files and folders that are given; `since` if it is the same."""
        tree, modes, empty = self._added(entries)
        now = (tree, modes, left_out, empty, only)
        if since is not None and (since.tree, since.modes, since.left_out, since.empty, since.only) == now:
            return since
        id_ = self._keep_beside(tree, message_of(modes, left_out, empty, only))
        return Snapshot(id_, *now, files=entries)

    def _keep_beside(self, tree: str, message: bytes) -> str:
        """Keep for good a tree that is not the whole folder's."""
        reference = f"{self._reference}-files"
        parent = self._newest_of_files or self.repository.read_reference(reference)
        self._newest_of_files = self.repository.add_object("commit", commit_of(tree, parent, message))
        self.repository.point(reference, self._newest_of_files)
        return self._newest_of_files

    async def differences_of(
        self, before: Mapping[str, Entry], after: Mapping[str, Entry], only: Set[str]
    ) -> Sequence[Difference]:
        """Return the differences between files and folders that are given, in the order of the paths.

        Raises:
            SnapshotError: They could not be compared.
        """
        try:
            old = await to_thread.run_sync(self._added, before)
            new = await to_thread.run_sync(self._added, after)
        except OSError as error:
            raise SnapshotError(f"{error.strerror}: {error.filename or self.repository.folder}") from error
        states = [Snapshot("", tree, modes, {}, empty, only) for tree, modes, empty in (old, new)]
        return await differences(self.repository, *states)

    def _added(self, entries: Mapping[str, Entry]) -> tuple[str, Modes, frozenset[str]]:
        """Add the tree of files and folders, and return it with the permission bits and the folders without files."""
        files = {path: entry for path, entry in entries.items() if not path.endswith("/")}
        tree = self.repository.add_tree({path: (git_mode(one.mode), one.oid) for path, one in files.items()})
        modes = Modes().changed({path: one.mode for path, one in entries.items() if one.mode is not None})
        return tree, modes, frozenset(path for path in entries if path.endswith("/")) - all_folders_above(files)

    def _add(self, path: str, mode: int | None) -> str:
        place = self.root / path
        if mode is None:
            return self.repository.add_object("blob", os.fsencode(place.readlink()))
        return self.repository.add_object("blob", read_regular_file(place, max_bytes=self._limits.max_file_bytes))

    async def _look(self) -> tuple[Set[str], PathStates, Set[str]]:
        is_small = self._entries is not None and len(self._bits) <= _FEW_FILES
        at = await self._finder.find({path: self._states.get(path) for path in self._bits} if is_small else None)
        unknown = set() if is_small else self._not_in_index  # git takes them for new, and does not see that one is gone
        new = [path for path in at.new if path not in unknown]
        recent = () if is_small else self._recent  # a small folder was looked at for bits, too
        again = await self._aside(stat_paths, self.root, recent, self._limits)
        moded = (path for path, mode in again.bits.items() if self._bits.get(path, mode) != mode)
        changed = {*at.changed, *unknown, *moded}
        found = await self._aside(stat_paths, self.root, [*changed, *new], self._limits)
        found.left_out.update(at.left_out)
        if is_small:  # the state of a file in a folder that is not looked into
            found.bits = {path: mode for path, mode in found.bits.items() if not self._is_kept(path, found)}
        await self._leave_out(found, new)
        self._recent = [path for path in {*again.recent, *found.recent} if path in self._bits or path in found.bits]
        seen = without_folders(at.folders, self._closed)
        return changed, found, {*seen, *all_folders_above((*found.gone, *found.left_out))}

    async def _aside(self, work: Callable[..., _Done], *args: Any) -> _Done:
        """Do something in a thread, unless there are so few files that the thread would take most of the time."""
        return work(*args) if self._entries is not None else await to_thread.run_sync(partial(work, *args))

    def _is_kept(self, path: str, found: PathStates) -> bool:
        state = found.states.get(path)
        return state is not None and path in self._bits and self._states.get(path) == state

    def _note(self, found: PathStates, folders: Iterable[str]) -> Modes:
        gone = [path for path in (*found.gone, *found.left_out) if path in self._bits]
        self._folders.note([path for path in found.bits if path not in self._bits], gone)
        self._folders.look(folders)
        for path in gone:
            del self._bits[path]
        self._bits |= found.bits
        for path in (*gone, *found.bits):
            self._states.pop(path, None)
        self._states |= found.states
        gone += [path for path, mode in found.bits.items() if mode is None]
        if self._modes is None:
            self._modes = modes_of({**_of_files(found), **self._folders.bits})
        else:
            self._modes = self._modes.changed(_of_files(found), gone).with_folders(self._folders.bits)
        return self._modes

    def _is_still(self, snapshot: Snapshot, modes: Modes) -> bool:
        now = (modes, self._left_out, self._folders.empty)
        return (snapshot.modes, snapshot.left_out, snapshot.empty) == now

    async def _begin(self) -> None:
        await to_thread.run_sync(self.repository.prepare)
        await to_thread.run_sync(self._take_over_index)
        known = paths_in(await self.repository.run("ls-files", "-z", index=self._index))
        found = await to_thread.run_sync(stat_paths, self.root, known, self._limits)
        self._bits, self._recent = found.bits, found.recent
        self._states = found.states if len(found.bits) <= _FEW_FILES else {}
        self._entries, self._not_in_index = None, set()
        self._folders = KeptFolders(self.root, found.bits)
        await to_thread.run_sync(self._folders.look, ())
        self._modes = modes_of({**_of_files(found), **self._folders.bits}) if found.bits else None

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
            copy2(newest, self._index)  # keep the time: git uses it to detect changes within the second of the write

    async def _leave_out(self, found: PathStates, new: list[str]) -> None:
        folders, new_bytes = await self._aside(self._not_kept_among, found, new)
        if len(new) > MAX_IGNORED_FILES or new_bytes > MAX_IGNORED_BYTES:
            heavy = await self._finder.heavy_folders(found.sizes, new)
            folders |= dict.fromkeys(heavy, "it is ignored by git, and large")
        if folders:
            self._closed |= folders
            self._finder.close(folders)
            found.leave_out_below(folders)
            new[:] = without_folders(new, folders)
        self._left_out = self._closed | found.left_out
        if len(self._bits) + len(new) > self._limits.max_files:
            raise TooLargeError(f"{self.root} holds more than {self._limits.max_files:,} files")
        if sum(found.sizes.get(path, 0) for path in new) > self._limits.max_new_bytes:
            raise TooLargeError(f"{self.root} holds more than {self._limits.max_new_bytes // 1_000_000:,} MB of files")

    def _not_kept_among(self, found: PathStates, new: Sequence[str]) -> tuple[dict[str, str], int]:
        """Return the folders of new files that are not kept, with the reasons, and the bytes of all new files."""
        folders = dict.fromkeys(bare_repositories(self.root, new), "it is a repository without files")
        made = [one for one in environments(self.root, new) if not any(path.startswith(one) for path in self._bits)]
        folders |= dict.fromkeys(made, "package changes have their own rollback")
        return folders, sum(found.sizes.get(path, 0) for path in new)

    async def _update_index(self, dropped: Sequence[str], kept: Sequence[str]) -> None:
        self._index.with_name(f"{self._index.name}.lock").unlink(missing_ok=True)  # left by a killed git
        update = partial(self.repository.run, "update-index", "-z", index=self._index, timeout_s=_FIRST_S)
        if dropped:
            await update("--force-remove", "--stdin", stdin=_joined(dropped))
        settings = ["core.bigFileThreshold=0"] if len(kept) > _MANY_FILES else []
        for start in range(0, len(kept), _FILES_AT_ONCE):  # so that git soon hurries where somebody begins to wait
            some = kept[start : start + _FILES_AT_ONCE]
            options = ("--add", "--remove", "--replace", "--stdin")
            await update(*options, stdin=_joined(some), settings=settings, is_long=len(kept) > _MANY_FILES)

    async def _commit(self, tree: str, message: bytes, parent: str | None) -> str:
        """Keep a tree for good: what no reference leads to would be swept away some day."""

        def commit() -> str:
            above = parent or self.repository.read_reference(self._reference)
            id_ = self.repository.add_object("commit", commit_of(tree, above, message))
            self.repository.point(self._reference, id_)
            return id_

        return await to_thread.run_sync(commit)


def _of_files(found: PathStates) -> dict[str, int]:
    return {path: mode for path, mode in found.bits.items() if mode is not None}


def _staged(listed: bytes) -> dict[str, tuple[str, str]]:
    """Return mode and id of each file that `git ls-files --stage -z` lists."""
    lines = (line.partition(b"\t") for line in listed.split(b"\0")[:-1])
    heads = ((os.fsdecode(path), head.decode("ascii").split(" ")) for head, _, path in lines)
    return {path: (head[0], head[1]) for path, head in heads}


def _joined(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
