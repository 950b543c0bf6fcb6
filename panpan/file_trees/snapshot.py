"""Snapshots: content of a folder at a moment, with the paths and permission bits that git keeps not; differences."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property
from typing import Any

from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.own_repository import OwnRepository, TooMuchError
from panpan.types.dataclass import dataclass
from panpan.types.events import ChangeKind, FileChange


def folder_of(path: str) -> str:
    """Return the folder that a file or folder lies in; empty for the one that is kept itself."""
    return path[: path.rfind("/", 0, len(path) - 1) + 1]


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders that a file or folder lies in, the nearest first, without the one that is kept itself."""
    while path := folder_of(path):
        yield path


def all_folders_above(paths: Iterable[str]) -> set[str]:
    """Return every folder that one of the paths lies in, without the one that is kept itself.

    Each folder is climbed from once, so that a tree costs as much as it has folders, however deep it is.
    """
    found: set[str] = set()
    for path in paths:
        for folder in folders_above(path):
            if folder in found:
                break
            found.add(folder)
    return found


# Git keeps one permission bit: whether the owner may run a file. Most files and folders have the same bits, so only
# those and the exceptions are kept.

_RUN_BY_OWNER = 0o100
_ALL_BITS = 0o7777
_FOLDER = 0o755


@dataclass(frozen=True, slots=True)
class Modes:
    """The permission bits of the files and folders of one snapshot."""

    file: int = 0o644
    program: int = 0o755
    """Bits of a file that its owner may run."""
    folder: int = _FOLDER
    others: Mapping[str, int] = field(default_factory=dict)
    """Bits of files and folders with other ones, by path; that of a folder ends with a slash."""

    @property
    def usual(self) -> tuple[int, int, int]:
        """Bits of what is not among `others`."""
        return self.file, self.program, self.folder

    def of(self, path: str, *, is_program: bool = False) -> int:
        """Return the bits of one file or folder."""
        if path.endswith("/"):
            return self.others.get(path, self.folder)
        return self.others.get(path, self.program if is_program else self.file)

    def changed(self, bits: Mapping[str, int], gone: Iterable[str] = ()) -> "Modes":
        """Return the bits after some have got others; the usual ones stay, so that the two can be compared."""
        others = dict(self.others)
        for path in (*gone, *bits):
            others.pop(path, None)
        others |= {path: mode for path, mode in bits.items() if mode != self._usual_of(path, mode)}
        return Modes(*self.usual, others)

    def with_folders(self, bits: Mapping[str, int]) -> "Modes":
        """Return the bits with those of all folders."""
        files = {path: mode for path, mode in self.others.items() if not path.endswith("/")}
        return Modes(*self.usual, files).changed(bits)

    def as_json(self) -> dict[str, Any]:
        """Return what `modes_from` reads."""
        return {"file": self.file, "program": self.program, "folder": self.folder, "others": dict(self.others)}

    def _usual_of(self, path: str, mode: int) -> int:
        if path.endswith("/"):
            return self.folder
        return self.program if mode & _RUN_BY_OWNER else self.file


def modes_of(bits: Mapping[str, int]) -> Modes:
    """Return the bits of all files and folders, given by path, in short."""
    folder = _usual((mode for path, mode in bits.items() if path.endswith("/")), _FOLDER)
    files = [mode for path, mode in bits.items() if not path.endswith("/")]
    file = _usual((mode for mode in files if not mode & _RUN_BY_OWNER), 0o644)
    program = _usual((mode for mode in files if mode & _RUN_BY_OWNER), 0o755)
    return Modes(file, program, folder).changed(bits)


def modes_from(data: Any) -> Modes:
    """Return what `as_json` gave, or raise `ValueError`; a snapshot of an older panpan says nothing of folders."""
    match data:
        case {"file": int(file), "program": int(program), "others": dict(others)}:
            folder = found if isinstance(found := data.get("folder"), int) else _FOLDER
            bits = {str(path): int(mode) & _ALL_BITS for path, mode in others.items()}
            return Modes(file & _ALL_BITS, program & _ALL_BITS, folder & _ALL_BITS, bits)
        case _:
            raise ValueError("these are not permission bits")


def _usual(modes: Iterable[int], default: int) -> int:
    counted = Counter(modes).most_common(1)
    return counted[0][0] if counted else default


@dataclass(frozen=True)
class Snapshot:
    """A folder at a moment."""

    id: str
    """Id of the commit that holds it."""
    tree: str
    modes: Modes = field(default_factory=Modes)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reasons why files are not in it, by path; a path that ends with a slash is a folder."""
    empty: Set[str] = frozenset()
    """Folders without files, each with a slash at its end."""
    only: Set[str] | None = None
    """The only paths that it is about; None: the whole folder."""
    also: Set[str] = frozenset()
    """Paths in folders that are left out which it is about nevertheless."""
    files: Mapping[str, "Entry"] = field(default_factory=dict, compare=False)
    """Files and folders of a snapshot that is about some, if it was taken by this process."""

    def why_left_out(self, path: str) -> str | None:
        """Return why a file or folder is not kept; None if nothing is known against it.

        A folder into which nobody can look is kept itself.
        """
        if path in self.also:
            return None
        if path in self.left_out and not path.endswith("/"):
            return self.left_out[path]
        above = (path[:length] for length in self._left_out_lengths if length < len(path))
        return next((self.left_out[place] for place in above if place in self.left_out), None)

    @cached_property
    def _left_out_lengths(self) -> Sequence[int]:
        """Lengths of the folders that are left out, the longest first: a deep path has far more folders above it."""
        return sorted({len(place) for place in self.left_out if place.endswith("/")}, reverse=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, link or folder of a snapshot."""

    oid: str
    """Id of its content, or of the target of a link; empty for a folder."""
    mode: int | None
    """Permission bits; None for a link."""


def message_of(
    modes: Modes,
    left_out: Mapping[str, str],
    empty: Iterable[str],
    only: Iterable[str] | None = None,
    also: Iterable[str] = (),
) -> bytes:
    """Return the message of the commit that holds a snapshot: what git has no place for."""
    data: dict[str, Any] = {"modes": modes.as_json(), "left_out": dict(left_out), "empty": sorted(empty)}
    if only is not None:
        data["only"] = sorted(only)
    if also:
        data["also"] = sorted(also)
    return json.dumps(data).encode("ascii") + b"\n"


def commit_of(tree: str, parent: str | None, message: bytes) -> bytes:
    """Return the commit that holds a snapshot, as git has it; `parent` is that of the snapshot before it."""
    now = f"panpan <panpan@localhost> {time.time():.0f} +0000"
    head = (f"tree {tree}", *((f"parent {parent}",) if parent else ()), f"author {now}", f"committer {now}", "", "")
    return "\n".join(head).encode("ascii") + message


def snapshot_from(id_: str, commit: bytes) -> Snapshot:
    """Return the snapshot that a commit, as `git cat-file commit` prints it, holds; raise `ValueError` for another."""
    head, _, message = commit.partition(b"\n\n")
    kind, _, tree = head.partition(b"\n")[0].decode("ascii").partition(" ")
    data = json.loads(message)
    match data:
        case {"left_out": dict(left_out), "modes": modes} if kind == "tree":
            reasons = {str(key): str(why) for key, why in left_out.items()}
            empty = data.get("empty")  # missing in snapshots of older versions
            folders = frozenset(map(str, empty)) if isinstance(empty, list) else frozenset()
            only = frozenset(map(str, paths)) if isinstance(paths := data.get("only"), list) else None
            also = frozenset(map(str, paths)) if isinstance(paths := data.get("also"), list) else frozenset()
            return Snapshot(id_, tree, modes_from(modes), reasons, folders, only, also)
        case _:
            raise ValueError("the commit holds no snapshot")


_FOLDER_MODE = "040000"
_LINK = "120000"
_PROGRAM = "100755"
_NOTHING = "000000"


def git_mode(mode: int | None) -> str:
    """Return the mode that git keeps of a file with these permission bits; None for a link."""
    return _LINK if mode is None else _PROGRAM if mode & _RUN_BY_OWNER else "100644"


_MAX_CHARS = 100_000
"""Most characters of paths in one command. Beyond that it lists the whole tree, which is quicker than many commands."""
MAX_DIFF_BYTES = 1_000_000
"""Most of the text of a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One file or folder that is not the same in two snapshots."""

    path: str
    """A folder ends with a slash."""
    before: Entry | None
    after: Entry | None
    added: int | None = 0
    deleted: int | None = 0

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/")

    @property
    def kind(self) -> ChangeKind:
        if self.before is None:
            return "added"
        return "deleted" if self.after is None else "modified"


async def differences(repository: OwnRepository, before: Snapshot, after: Snapshot) -> Sequence[Difference]:
    """Return what differs, in the order of the paths; what either leaves out or is not about is no difference.

    Raises:
        SnapshotError: A snapshot cannot be read.
    """
    only = before.only if after.only is None else after.only if before.only is None else before.only & after.only
    files, folders = await _of_content(repository, before, after, only)
    found = {one.path: one for one in (*files, *_of_folders(folders, before, after))}
    found |= {one.path: one for one in await _of_modes(repository, before, after, found)}
    known = (one for one in found.values() if not (before.why_left_out(one.path) or after.why_left_out(one.path)))
    return sorted((one for one in known if only is None or one.path in only), key=lambda one: one.path)


def list_changes(changes: Sequence[Difference], prefix: str = "") -> Sequence[FileChange]:
    """Return changes as people and programs want them, each path behind `prefix`.

    Folders that only came or went with what is in them are left out.
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
    if snapshot.files:
        return {path: snapshot.files[path] for path in wanted & snapshot.files.keys()}
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
        path = os.fsdecode(name) + ("/" if mode == _FOLDER_MODE else "")
        if path in wanted:
            found[path] = _entry(mode, oid, path, snapshot)
    return found


async def content(repository: OwnRepository, oid: str) -> bytes:
    """Return the content of an entry."""
    return await _asked(repository, "cat-file", "blob", oid)


async def names(repository: OwnRepository, tree: str, *options: str) -> list[str]:
    """Return the paths in a tree; with `-t` those of folders, too, each with a slash at its end."""
    printed = await _asked(repository, "ls-tree", "-r", *options, "-z", "--full-tree", tree)
    lines = (line.partition(b"\t") for line in printed.split(b"\0")[:-1])
    return [os.fsdecode(name) + ("/" if head.startswith(_FOLDER_MODE.encode()) else "") for head, _, name in lines]


async def diff_text(repository: OwnRepository, before: str, after: str) -> str:
    """Return the difference of two trees as a unified diff, not cleaned for a terminal; of a very long one, a note."""
    options = ("-r", "-p", "--no-renames", "--no-ext-diff")
    try:
        printed = await repository.run("diff-tree", *options, before, after, max_bytes=MAX_DIFF_BYTES)
    except TooMuchError:
        return "… the difference is too long to be shown\n"
    except ToolError as error:
        raise SnapshotError(f"a snapshot of {repository.work_tree} cannot be read: {error}") from error
    return printed.decode(errors="replace")


async def _of_content(
    repository: OwnRepository, before: Snapshot, after: Snapshot, only: Set[str] | None
) -> tuple[Sequence[Difference], Mapping[str, bool]]:
    """Return the files that differ, and of the folders that have files in one snapshot alone True if it is `after`."""
    if before.tree == after.tree:
        return (), {}
    options = ("-r", "-t", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev", "--no-ext-diff")
    asked = [path.removesuffix("/") for path in sorted(only or ())]
    if sum(map(len, asked)) > _MAX_CHARS:
        asked = []
    printed = await _asked(repository, "diff-tree", *options, before.tree, after.tree, "--", *asked)
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
        if (old_mode == _FOLDER_MODE) != (new_mode == _FOLDER_MODE):
            folders[f"{path}/"] = new_mode == _FOLDER_MODE
        old_entry, new_entry = _file_or_none(old_mode, old, path, before), _file_or_none(new_mode, new, path, after)
        if old_entry or new_entry:
            raw.append((path, old_entry, new_entry))
        index += 2
    return [Difference(path, old, new, *lines.get(path, (None, None))) for path, old, new in raw], folders


def _of_folders(came: Mapping[str, bool], before: Snapshot, after: Snapshot) -> Sequence[Difference]:
    """Return the folders that are in one snapshot alone; `came` is as `_of_content` returns it."""
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
    return None if mode in (_NOTHING, _FOLDER_MODE) else _entry(mode, oid, path, snapshot)


def _entry(mode: str, oid: str, path: str, snapshot: Snapshot) -> Entry:
    if mode == _FOLDER_MODE:
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
