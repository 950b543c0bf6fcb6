"""What differs between two snapshots of one folder: files and folders, lines, text; and the content of their files."""

import os
from collections.abc import Iterable, Mapping, Sequence

from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.own_repository import OwnRepository, TooMuchError
from panpan.file_trees.snapshot import Entry, Snapshot, all_folders_above
from panpan.types.dataclass import dataclass
from panpan.types.file_change import ChangeKind, FileChange

_FOLDER = "040000"
_LINK = "120000"
_PROGRAM = "100755"
_NOTHING = "000000"
_MAX_CHARS = 100_000
"""Characters of paths in one command. Beyond that it lists the whole tree, which is quicker than many commands."""
MAX_DIFF_BYTES = 1_000_000
"""Of the text of a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One file or folder that is not the same in two snapshots."""

    path: str
    """That of a folder ends with a slash."""
    before: Entry | None
    after: Entry | None
    added: int | None = 0
    deleted: int | None = 0

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.endswith("/")

    @property
    def kind(self) -> ChangeKind:
        """What became of it."""
        if self.before is None:
            return "added"
        return "deleted" if self.after is None else "modified"


async def differences(repository: OwnRepository, before: Snapshot, after: Snapshot) -> Sequence[Difference]:
    """Return what differs, in the order of the paths; what either leaves out is no difference.

    Raises:
        SnapshotError: A snapshot cannot be read.
    """
    files, folders = await _of_content(repository, before, after)
    found = {one.path: one for one in (*files, *_of_folders(folders, before, after))}
    found |= {one.path: one for one in await _of_modes(repository, before, after, found)}
    known = (one for one in found.values() if not (before.why_left_out(one.path) or after.why_left_out(one.path)))
    return sorted(known, key=lambda one: one.path)


def listed(changes: Sequence[Difference], prefix: str = "") -> Sequence[FileChange]:
    """Return changes as people and programs want them: without folders that only came or went with what is in them.

    Args:
        changes: From one snapshot to another.
        prefix: Stands before each path.
    """
    implied = {
        kind: all_folders_above(one.path for one in changes if one.kind == kind) for kind in ("added", "deleted")
    }
    told = (one for one in changes if one.path not in implied.get(one.kind, ()))
    return [FileChange(prefix + one.path, one.kind, one.added, one.deleted) for one in told]


async def entries(repository: OwnRepository, snapshot: Snapshot, paths: Iterable[str]) -> Mapping[str, Entry]:
    """Return what a snapshot holds of `paths`; what it does not hold is missing.

    Raises:
        SnapshotError: It cannot be read.
    """
    wanted = set(paths)
    found = {path: _folder(path, snapshot) for path in wanted & snapshot.empty}
    asked = [path.removesuffix("/") for path in sorted(wanted - snapshot.empty)]
    if not asked:
        return found
    options = ["-t"]
    if sum(map(len, asked)) > _MAX_CHARS:
        options, asked = ["-r", "-t"], []
    printed = await _asked(repository, "ls-tree", *options, "-z", "--full-tree", snapshot.tree, "--", *asked)
    for line in printed.split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, _, oid = head.decode("ascii").split(" ")
        path = os.fsdecode(name) + ("/" if mode == _FOLDER else "")
        if path in wanted:
            found[path] = _entry(mode, oid, path, snapshot)
    return found


async def content(repository: OwnRepository, oid: str) -> bytes:
    """Return what an entry holds.

    Raises:
        SnapshotError: It cannot be read.
    """
    return await _asked(repository, "cat-file", "blob", oid)


async def names(repository: OwnRepository, tree: str, *options: str) -> list[str]:
    """Return the paths in a tree; with `-t` those of folders, too, each with a slash at its end.

    Raises:
        SnapshotError: It cannot be read.
    """
    printed = await _asked(repository, "ls-tree", "-r", *options, "-z", "--full-tree", tree)
    lines = (line.partition(b"\t") for line in printed.split(b"\0")[:-1])
    return [os.fsdecode(name) + ("/" if head.startswith(_FOLDER.encode()) else "") for head, _, name in lines]


async def diff_text(repository: OwnRepository, before: str, after: str) -> str:
    """Return the difference of two trees as a unified diff, not cleaned for a terminal; of a very long one, a note.

    Raises:
        SnapshotError: A tree cannot be read.
    """
    options = ("-r", "-p", "--no-renames", "--no-ext-diff")
    try:
        printed = await repository.run("diff-tree", *options, before, after, max_bytes=MAX_DIFF_BYTES)
    except TooMuchError:
        return "… the difference is too long to be shown\n"
    except ToolError as error:
        raise SnapshotError(f"a snapshot of {repository.work_tree} cannot be read: {error}") from error
    return printed.decode(errors="replace")


async def _of_content(
    repository: OwnRepository, before: Snapshot, after: Snapshot
) -> tuple[Sequence[Difference], Mapping[str, bool]]:
    """Return the files that differ, and of the folders that have files in one snapshot alone whether it is `after`."""
    if before.tree == after.tree:
        return (), {}
    options = ("-r", "-t", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev", "--no-ext-diff")
    printed = await _asked(repository, "diff-tree", *options, before.tree, after.tree)
    parts = printed.split(b"\0")[:-1]
    raw: list[tuple[str, Entry | None, Entry | None]] = []
    folders: dict[str, bool] = {}
    lines: dict[str, tuple[int | None, int | None]] = {}
    index = 0
    while index < len(parts):
        part = parts[index]
        if not part.startswith(b":"):
            added, deleted, name = part.split(b"\t", 2)
            lines[os.fsdecode(name)] = (_number(added), _number(deleted))
            index += 1
            continue
        path = os.fsdecode(parts[index + 1])
        old_mode, new_mode, old, new, _ = part[1:].decode("ascii").split(" ")
        if (old_mode == _FOLDER) != (new_mode == _FOLDER):
            folders[f"{path}/"] = new_mode == _FOLDER
        old_entry, new_entry = _file_or_none(old_mode, old, path, before), _file_or_none(new_mode, new, path, after)
        if old_entry or new_entry:
            raw.append((path, old_entry, new_entry))
        index += 2
    return [Difference(path, old, new, *lines.get(path, (None, None))) for path, old, new in raw], folders


def _of_folders(came: Mapping[str, bool], before: Snapshot, after: Snapshot) -> Sequence[Difference]:
    """Return the folders that are in one snapshot alone.

    Args:
        came: Of the folders that have files in one of them alone whether it is `after`.
        before: A snapshot.
        after: Another one.
    """
    found = []
    for path in {*came, *(before.empty ^ after.empty)}:
        was_there = path in before.empty or came.get(path) is False
        is_there = path in after.empty or came.get(path) is True
        if was_there != is_there:
            old, new = _folder(path, before) if was_there else None, _folder(path, after) if is_there else None
            found.append(Difference(path, old, new))
    return found


async def _of_modes(
    repository: OwnRepository, before: Snapshot, after: Snapshot, known: Mapping[str, Difference]
) -> Sequence[Difference]:
    """Return the files and folders with the same content and other permission bits."""
    if before.modes == after.modes:
        return ()
    if before.modes.usual == after.modes.usual:
        old_bits, new_bits = before.modes.others, after.modes.others
        paths: Iterable[str] = {path for path in {*old_bits, *new_bits} if old_bits.get(path) != new_bits.get(path)}
    else:
        paths = (*await names(repository, after.tree, "-t"), *after.empty)
    same = [path for path in paths if path not in known]
    old, new = await entries(repository, before, same), await entries(repository, after, same)
    there = [path for path in same if path in old and path in new]
    return [Difference(path, old[path], new[path]) for path in there if old[path] != new[path]]


def _file_or_none(mode: str, oid: str, path: str, snapshot: Snapshot) -> Entry | None:
    return None if mode in (_NOTHING, _FOLDER) else _entry(mode, oid, path, snapshot)


def _entry(mode: str, oid: str, path: str, snapshot: Snapshot) -> Entry:
    if mode == _FOLDER:
        return _folder(path, snapshot)
    if mode == _LINK:
        return Entry(oid, None)
    return Entry(oid, snapshot.modes.of(path, is_program=mode == _PROGRAM))


def _folder(path: str, snapshot: Snapshot) -> Entry:
    return Entry("", snapshot.modes.of(path))


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


async def _asked(repository: OwnRepository, *args: str) -> bytes:
    try:
        return await repository.run(*args)
    except ToolError as error:
        raise SnapshotError(f"a snapshot of {repository.work_tree} cannot be read: {error}") from error
