"""What differs between two snapshots of one folder: files, lines, text; and the content of their files."""

import os
from collections.abc import Iterable, Mapping, Sequence

from panpan.errors import SnapshotError, ToolError
from panpan.services.snapshots.snapshot import Entry, Snapshot
from panpan.system.own_repository import OwnRepository, TooMuchError
from panpan.types.dataclass import dataclass
from panpan.types.file_change import ChangeKind, FileChange

_LINK = "120000"
_PROGRAM = "100755"
_NOTHING = "000000"
_PATHS_AT_ONCE = 1_000
MAX_DIFF_BYTES = 1_000_000
"""Of the text of a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that is not the same in two snapshots."""

    path: str
    before: Entry | None
    after: Entry | None
    added: int | None = 0
    deleted: int | None = 0

    @property
    def kind(self) -> ChangeKind:
        """What became of the file."""
        if self.before is None:
            return "added"
        return "deleted" if self.after is None else "modified"

    def as_change(self, prefix: str = "") -> FileChange:
        """Return it for people and programs."""
        return FileChange(prefix + self.path, self.kind, self.added, self.deleted)


async def differences(repository: OwnRepository, before: Snapshot, after: Snapshot) -> Sequence[Difference]:
    """Return the files that differ, in the order of their paths; those that either leaves out are no difference.

    Raises:
        SnapshotError: A snapshot cannot be read.
    """
    found = {one.path: one for one in await _of_content(repository, before, after)}
    found |= {one.path: one for one in await _of_modes(repository, before, after, found)}
    known = (one for one in found.values() if not (before.why_left_out(one.path) or after.why_left_out(one.path)))
    return sorted(known, key=lambda one: one.path)


async def entries(repository: OwnRepository, snapshot: Snapshot, paths: Iterable[str]) -> Mapping[str, Entry]:
    """Return what a snapshot holds of `paths`; what it does not hold is missing.

    Raises:
        SnapshotError: It cannot be read.
    """
    wanted = list(paths)
    found: dict[str, Entry] = {}
    for start in range(0, len(wanted), _PATHS_AT_ONCE):
        some = wanted[start : start + _PATHS_AT_ONCE]
        printed = await _asked(repository, "ls-tree", "-r", "-z", "--full-tree", snapshot.tree, "--", *some)
        for line in printed.split(b"\0")[:-1]:
            head, _, name = line.partition(b"\t")
            mode, _, oid = head.decode("ascii").split(" ")
            path = os.fsdecode(name)
            found[path] = _entry(mode, oid, path, snapshot)
    return {path: found[path] for path in wanted if path in found}


async def content(repository: OwnRepository, oid: str) -> bytes:
    """Return what an entry holds.

    Raises:
        SnapshotError: It cannot be read.
    """
    return await _asked(repository, "cat-file", "blob", oid)


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


async def _of_content(repository: OwnRepository, before: Snapshot, after: Snapshot) -> Sequence[Difference]:
    if before.tree == after.tree:
        return ()
    options = ("-r", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev", "--no-ext-diff")
    printed = await _asked(repository, "diff-tree", *options, before.tree, after.tree)
    parts = printed.split(b"\0")[:-1]
    raw: list[tuple[str, Entry | None, Entry | None]] = []
    lines: dict[str, tuple[int | None, int | None]] = {}
    index = 0
    while index < len(parts):
        part = parts[index]
        if part.startswith(b":"):
            path = os.fsdecode(parts[index + 1])
            old_mode, new_mode, old, new, _ = part[1:].decode("ascii").split(" ")
            raw.append((path, _entry_or_none(old_mode, old, path, before), _entry_or_none(new_mode, new, path, after)))
            index += 2
        else:
            added, deleted, name = part.split(b"\t", 2)
            lines[os.fsdecode(name)] = (_number(added), _number(deleted))
            index += 1
    return [Difference(path, old, new, *lines.get(path, (None, None))) for path, old, new in raw]


async def _of_modes(
    repository: OwnRepository, before: Snapshot, after: Snapshot, known: Mapping[str, Difference]
) -> Sequence[Difference]:
    """Return the files with the same content and other permission bits."""
    if before.modes == after.modes:
        return ()
    if (before.modes.file, before.modes.program) == (after.modes.file, after.modes.program):
        paths: Iterable[str] = {
            path
            for path in {*before.modes.others, *after.modes.others}
            if before.modes.others.get(path) != after.modes.others.get(path)
        }
    else:
        printed = await _asked(repository, "ls-tree", "-r", "-z", "--name-only", "--full-tree", after.tree)
        paths = [os.fsdecode(name) for name in printed.split(b"\0")[:-1]]
    same = [path for path in paths if path not in known]
    old, new = await entries(repository, before, same), await entries(repository, after, same)
    return [Difference(path, old[path], new[path]) for path in same if path in old and old[path] != new.get(path)]


def _entry_or_none(mode: str, oid: str, path: str, snapshot: Snapshot) -> Entry | None:
    return None if mode == _NOTHING else _entry(mode, oid, path, snapshot)


def _entry(mode: str, oid: str, path: str, snapshot: Snapshot) -> Entry:
    if mode == _LINK:
        return Entry(oid, None)
    return Entry(oid, snapshot.modes.of(path, is_program=mode == _PROGRAM))


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


async def _asked(repository: OwnRepository, *args: str) -> bytes:
    try:
        return await repository.run(*args)
    except ToolError as error:
        raise SnapshotError(f"a snapshot of {repository.work_tree} cannot be read: {error}") from error
