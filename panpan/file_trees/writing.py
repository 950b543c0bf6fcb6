"""Bringing kept content back onto the disk, and working out what it is after steps are undone.

The rule: a file is only replaced or removed while it is what the plan took it for, to the byte; what is new goes in
place whole, by a rename; no link is followed, and nothing outside the folder is touched. If one file fails, those
before it are put back. A folder goes only while nothing is in it, so that what the user or anybody else put there
stays.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from hashlib import blake2b, sha1
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio import to_thread

from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.kept_files import has_free_place, without_folders
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import (
    Difference,
    Entry,
    Modes,
    Snapshot,
    all_folders_above,
    content,
    differences,
    entries,
    git_mode,
    names,
)
from panpan.system.files.atomic_write import DiskOperations, temporary_name, write_atomic
from panpan.system.files.file_lock import lock_file
from panpan.system.files.folder_tree import walk
from panpan.system.files.read_file import open_below, opened_folder, read_regular_file, set_mode, set_mode_in, status_of
from panpan.types.events import is_generated

_CHUNK_BYTES = 32_000_000
"""Content that is in memory at once."""
_SYNCED_EACH = 200
"""Up to so many files, each is seen onto the disk; from there on all of them at the end."""


async def write_changes(
    repository: OwnRepository, changes: Sequence[Difference], operations: DiskOperations | None = None
) -> None:
    """Make each changed file what it is in `after`, all of them or none.

    `changes` lead from what is there now to what it becomes.

    Raises:
        SnapshotError: A file could not be written, or is not what it was taken for; those before it were put back.
    """
    disk = operations or (DiskOperations() if len(changes) <= _SYNCED_EACH else _SyncedAtTheEnd())
    files, folders = [one for one in changes if not one.is_folder], [one for one in changes if one.is_folder]
    done: list[Difference] = []
    try:
        await _write(repository, files, folders, disk, done)
        if len(changes) > _SYNCED_EACH:
            await to_thread.run_sync(os.sync)
    except (ToolError, OSError) as error:
        try:
            back = [_turned(one) for one in done], [_turned(one) for one in folders]
            await _write(repository, *back, disk, [])
        except (ToolError, OSError) as second:
            raise SnapshotError(
                f"{_why(error)}; some files are back and others are not ({_why(second)}); "
                "nothing is lost: do it again when there is space and no other program writes there"
            ) from error
        raise SnapshotError(f"{_why(error)}; all files are as they were") from error


async def _write(
    repository: OwnRepository,
    files: Sequence[Difference],
    folders: Sequence[Difference],
    disk: DiskOperations,
    done: list[Difference],
) -> None:
    root = repository.work_tree
    require_own_place(root)
    await to_thread.run_sync(open_folders, root, folders)
    gone = [one for one in files if one.after is None]  # deleted first, so that files can take the place of folders
    await to_thread.run_sync(_put_all, root, gone[::-1], {}, disk, done)
    in_use = await to_thread.run_sync(exchange_folders, root, folders)
    await _write_files(repository, [one for one in files if one.after is not None], disk, done)
    await to_thread.run_sync(close_folders, root, folders, in_use)


async def _write_files(
    repository: OwnRepository, changes: Sequence[Difference], disk: DiskOperations, done: list[Difference]
) -> None:
    sizes = await _sizes(repository, [_oid(one.after) for one in changes])
    start = 0
    while start < len(changes):
        end, waiting = start, 0
        while end < len(changes) and (end == start or waiting <= _CHUNK_BYTES):
            waiting += sizes.get(_oid(changes[end].after), 0)
            end += 1
        contents = await contents_of(repository, [_oid(one.after) for one in changes[start:end]])
        await to_thread.run_sync(_put_all, repository.work_tree, changes[start:end], contents, disk, done)
        start = end


def _put_all(
    root: Path,
    changes: Sequence[Difference],
    contents: Mapping[str, bytes],
    disk: DiskOperations,
    done: list[Difference],
) -> None:
    for change in changes:
        with lock_file(root / change.path):
            _put(root / change.path, change, contents.get(_oid(change.after), b""), disk)
        done.append(change)


def _put(place: Path, change: Difference, data: bytes, disk: DiskOperations) -> None:
    digest = _require_as_expected(place, change.before)
    match change.before, change.after:
        case _, None:
            with opened_folder(place.parent) as folder:
                os.unlink(place.name, dir_fd=folder)
        case Entry(oid=now, mode=int()), Entry(oid=then, mode=int(mode)) if now == then:
            set_mode(place, mode)
        case Entry(mode=int(old_mode)), Entry(mode=int(mode)):
            _replace_file(place, data, mode, old_mode, digest, disk)
        case None, Entry(mode=int(mode)):
            write_atomic(place, data, mode=mode, must_not_exist=True, operations=disk)
        case _, Entry(mode=mode):
            _exchange(place, data, mode, disk)


def _replace_file(
    place: Path, data: bytes, mode: int, old_mode: int, digest: bytes | None, disk: DiskOperations
) -> None:
    is_locked = not old_mode & stat.S_IWUSR
    if is_locked:
        set_mode(place, old_mode | stat.S_IWUSR)
    try:
        write_atomic(place, data, mode=mode, expected_digest=digest, operations=disk)
    except ToolError:
        if is_locked:
            with suppress(OSError):
                set_mode(place, old_mode)
        raise


def _exchange(place: Path, data: bytes, mode: int | None, disk: DiskOperations) -> None:
    """Put a link, or a file where a link was, in place by a rename."""
    new = temporary_name()
    with opened_folder(place.parent, is_made=True) as folder:
        try:
            if mode is None:
                os.symlink(data, new, dir_fd=folder)
            else:
                write_atomic(place.with_name(new), data, mode=mode, must_not_exist=True, operations=disk)
            disk.replace(new, place.name, folder)
        finally:
            with suppress(OSError):
                os.unlink(new, dir_fd=folder)


def _require_as_expected(place: Path, expected: Entry | None) -> bytes | None:
    """Refuse a file that is not what it was taken for; return the digest of its content, as the writer wants it."""
    try:
        status = status_of(place)
    except FileNotFoundError:
        status = None
    data: bytes | None = None
    if status is not None and stat.S_ISLNK(status.st_mode):
        with opened_folder(place.parent) as folder:
            data = os.fsencode(os.readlink(place.name, dir_fd=folder))
    elif status is not None and stat.S_ISREG(status.st_mode):
        data = read_regular_file(place, max_bytes=status.st_size)
    elif status is not None and stat.S_ISDIR(status.st_mode) and expected is None:
        _remove_empty_below(place)
    elif status is not None:
        raise ToolError(f"{place} is no longer a file")
    found = None if data is None or status is None else (_git_id(data), stat.S_ISLNK(status.st_mode))
    if found != (None if expected is None else (expected.oid, expected.mode is None)):
        raise ToolError(f"{place} was changed a moment ago")
    return None if data is None else blake2b(data, digest_size=16).digest()


def _remove_empty_below(folder: Path) -> None:
    """Remove a folder that holds nothing but empty folders, none of which is git's."""
    below = list(walk(folder))
    if any(files for _, _, files in below):
        raise ToolError(f"{folder} is a folder with files by now")
    if any(name.lower() == ".git" for _, folders, _ in below for name in folders):
        raise ToolError(f"{folder} holds a git repository by now")
    for here in (Path(here) for here, _, _ in reversed(below)):
        try:
            with opened_folder(here.parent) as above:
                os.rmdir(here.name, dir_fd=above)
        except OSError as error:
            raise ToolError(f"{here} is in the way: {error.strerror}") from error


class _SyncedAtTheEnd(DiskOperations):
    """The disk, for so many files that each cannot be waited for; the caller syncs all at the end."""

    def fsync(self, fd: int) -> None: ...


def _turned(change: Difference) -> Difference:
    return Difference(change.path, change.after, change.before)


async def _sizes(repository: OwnRepository, oids: Sequence[str]) -> Mapping[str, int]:
    printed = await repository.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=_lines(oids))
    return {oid: int(size) for oid, _, size in (line.partition(" ") for line in printed.decode().splitlines())}


async def contents_of(repository: OwnRepository, oids: Sequence[str]) -> Mapping[str, bytes]:
    """Return the content of objects, by id, without those that are missing."""
    printed = await repository.run("cat-file", "--batch", stdin=_lines(oids), max_bytes=2**40)
    contents: dict[str, bytes] = {}
    place = 0
    while place < len(printed):
        end = printed.index(b"\n", place)
        oid, kind, *size = printed[place:end].decode("ascii").split(" ")
        place = end + 1
        if kind != "missing":
            contents[oid] = printed[place : place + int(size[0])]
            place += int(size[0]) + 1
    return contents


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in dict.fromkeys(oids)).encode("ascii")


def _oid(entry: Entry | None) -> str:
    return "" if entry is None else entry.oid


def _git_id(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _why(error: ToolError | OSError) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)


_OPEN = stat.S_IRWXU
"""Bits that the user needs to change what is in a folder of theirs."""
_IN_USE = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_IS_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})


def open_folders(root: Path, folders: Sequence[Difference]) -> None:
    """Let the user change what is in those folders of `root` that get other permission bits, or go."""
    with opened_folder(root) as top:
        for one in folders:
            if one.before is not None:
                _set_bits(top, one.path, (one.before.mode or 0) | _OPEN)


def exchange_folders(root: Path, folders: Sequence[Difference]) -> Sequence[Difference]:
    """Remove the folders that have to go, make those that are missing, and return those that have to stay."""
    in_use = []
    with opened_folder(root) as top:
        for one in sorted(folders, key=_depth, reverse=True):
            if one.after is None:
                try:
                    with opened_above(top, one.path) as (above, name):
                        os.rmdir(name, dir_fd=above)
                except OSError as error:
                    if error.errno in _IN_USE:
                        in_use.append(one)
                    elif error.errno not in _IS_GONE:
                        raise
        for one in sorted(folders, key=_depth):
            if one.before is None:
                with suppress(FileExistsError), opened_above(top, one.path) as (above, name):
                    os.mkdir(name, mode=_OPEN, dir_fd=above)
                _set_bits(top, one.path, (one.after.mode if one.after and one.after.mode else 0) | _OPEN)
    return in_use


def close_folders(root: Path, folders: Iterable[Difference], in_use: Sequence[Difference]) -> None:
    """Give the folders their permission bits, when all that goes into them is there.

    `in_use` are those that `exchange_folders` returned.
    """
    staying = {one.path for one in in_use}
    with opened_folder(root) as top:
        for one in sorted(folders, key=_depth, reverse=True):
            wanted = one.before if one.path in staying else one.after
            if wanted is not None:
                _set_bits(top, one.path, wanted.mode or 0)


def require_own_place(root: Path) -> None:
    """Raise `ToolError` for a folder of the workspace that is gone, or whose name leads elsewhere by now."""
    if not root.is_dir() or root.resolve() != root:
        raise ToolError(f"{root} is no longer a folder, or a link to another one")


def _set_bits(top: int, path: str, bits: int) -> None:
    with suppress(FileNotFoundError), opened_above(top, path) as (above, name):
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{path} is no longer a folder")
        if stat.S_IMODE(status.st_mode) != bits:
            set_mode_in(above, name, bits)


@contextmanager
def opened_above(top: int, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that a folder lies in, and yield its descriptor and the name in it.

    The way stays text, since making a `Path` of each folder of a deep tree takes longer than all else.
    """
    *above, name = path.removesuffix("/").split("/")
    fd = open_below(top, above)
    try:
        yield fd, name
    finally:
        os.close(fd)


def _depth(change: Difference) -> int:
    return change.path.count("/")


class Revert:
    """Steps taken back on the content of a folder as it is now; files are objects of the repository."""

    def __init__(self, repository: OwnRepository, now: Snapshot, shared: Set[str]) -> None:
        self._shared = shared
        self.conflicts: dict[str, str] = {}
        self.merged: set[str] = set()
        self._repository = repository
        self._now = now
        self._entries: dict[str, Entry | None] = {}
        """Outcome for each file and folder that a step touched; None if it does not exist."""

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
                if not is_generated(change.path):  # generated files stay, without a message
                    self.conflicts[change.path] = str(conflict)

    async def tree(self) -> str:
        """Return the tree of what the folder becomes."""
        changed = await self._without_clashes()
        files = {path: None if entry is None else (git_mode(entry.mode), entry.oid) for path, entry in changed.items()}
        return await self._repository.changed_tree(self._now.tree, files)

    async def empty_folders(self, tree: str) -> frozenset[str]:
        """Return the folders without files in what the folder becomes, which is `tree`."""
        now, then = [await names(self._repository, one, "-t") for one in (self._now.tree, tree)]
        changed = self._changed_folders()
        wanted = {path for path, entry in changed.items() if entry is not None}
        there = {path for path in now if path.endswith("/")} | self._now.empty
        gone = changed.keys() - wanted
        kept = all_folders_above(there - gone)  # keep folders with files of the user
        in_the_way = {f"{path}/" for path in then if not path.endswith("/")} & (wanted | all_folders_above(wanted))
        free = set(without_folders(wanted, in_the_way))
        return frozenset((there - (wanted - free) | free) - (gone - kept) - set(then))

    def modes(self) -> Modes:
        """Return the permission bits of what the folder becomes."""
        files = self._changed()
        changed = (*files.items(), *self._changed_folders().items())
        bits = {path: entry.mode for path, entry in changed if entry is not None and entry.mode is not None}
        return self._now.modes.changed(bits, gone=files)  # a folder may have to stay for its other content

    def _changed(self) -> Mapping[str, Entry | None]:
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
            if is_new and (f"{path}/" in folders or path.startswith(in_the_way) or self._is_taken(path)):
                self.conflicts[path] = "something else has its place by now"
        return self._changed()

    def _is_taken(self, path: str) -> bool:
        """True if what is now in the place of a file is unknown to the snapshot, which is about other files."""
        leave = {folder for folder, entry in self._changed_folders().items() if entry is None}
        is_whole = self._now.only is None and path not in self._now.also
        if is_whole or f"{path}/" in leave:
            return False
        return not has_free_place(self._repository.work_tree, path)

    async def _undone(self, change: Difference, now: Entry | None) -> Entry | None:
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
    """A file was changed since in a way that cannot be merged with taking the step back."""


def _folder_undone(change: Difference, now: Entry | None) -> Entry | None:
    """Return what a folder was before a change; what the user made of it since stays, and so does what is in it."""
    if change.after is None:
        return now or change.before
    return change.before if now == change.after else now
