"""What one snapshot is: the content of a folder at a moment, with the paths and permission bits that git keeps not."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property
from typing import Any

from panpan.types.dataclass import dataclass


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


# Permission bits of files and folders, of which git itself keeps one: whether the owner may run a file.
#
# Most files and folders have the same bits, so what is kept is these, and those that have others.

_RUN_BY_OWNER = 0o100
_ALL_BITS = 0o7777
_FOLDER = 0o755


@dataclass(frozen=True, slots=True)
class Modes:
    """The permission bits of the files and folders of one snapshot."""

    file: int = 0o644
    """Of a file that cannot be run, unless it is among `others`."""
    program: int = 0o755
    """Of a file that its owner may run, unless it is among `others`."""
    folder: int = _FOLDER
    """Of a folder, unless it is among `others`."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Of files and folders with other bits, by path; that of a folder ends with a slash."""

    @property
    def usual(self) -> tuple[int, int, int]:
        """The bits of what is not among `others`."""
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
    """Return the bits of all files and folders in short.

    Args:
        bits: Those of each, by path.
    """
    folder = _usual((mode for path, mode in bits.items() if path.endswith("/")), _FOLDER)
    files = [mode for path, mode in bits.items() if not path.endswith("/")]
    file = _usual((mode for mode in files if not mode & _RUN_BY_OWNER), 0o644)
    program = _usual((mode for mode in files if mode & _RUN_BY_OWNER), 0o755)
    return Modes(file, program, folder).changed(bits)


def modes_from(data: Any) -> Modes:
    """Return what `as_json` gave; a snapshot of an older panpan says nothing of folders.

    Raises:
        ValueError: It is something else.
    """
    match data:
        case {"file": int(file), "program": int(program), "others": dict(others)}:
            folder = found if isinstance(found := data.get("folder"), int) else _FOLDER
            bits = {str(path): int(mode) & _ALL_BITS for path, mode in others.items()}
            return Modes(file & _ALL_BITS, program & _ALL_BITS, folder & _ALL_BITS, bits)
        case _:
            raise ValueError("these are no permission bits")


def _usual(modes: Iterable[int], default: int) -> int:
    counted = Counter(modes).most_common(1)
    return counted[0][0] if counted else default


@dataclass(frozen=True)
class Snapshot:
    """A folder at a moment."""

    id: str
    """Of the commit that holds it."""
    tree: str
    """Of its files and links."""
    modes: Modes = field(default_factory=Modes)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why files are not in it, by path; a path that ends with a slash is a folder."""
    empty: Set[str] = frozenset()
    """Folders without files, each with a slash at its end."""

    def why_left_out(self, path: str) -> str | None:
        """Return why a file or folder is not kept; None where nothing is known against it.

        A folder into which nobody can look is kept itself.
        """
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
    """Of its content; of a link: where it leads; empty: it is a folder."""
    mode: int | None
    """Permission bits; None: it is a link."""


def message_of(modes: Modes, left_out: Mapping[str, str], empty: Iterable[str]) -> bytes:
    """Return the message of the commit that holds a snapshot: what git has no place for."""
    data = {"modes": modes.as_json(), "left_out": dict(left_out), "empty": sorted(empty)}
    return json.dumps(data).encode("ascii") + b"\n"


def commit_of(tree: str, parent: str | None, message: bytes) -> bytes:
    """Return the commit that holds a snapshot, as git has it.

    Args:
        tree: Of its files and links.
        parent: The commit of the snapshot before it.
        message: What `message_of` returned.
    """
    now = f"panpan <panpan@localhost> {time.time():.0f} +0000"
    head = (f"tree {tree}", *((f"parent {parent}",) if parent else ()), f"author {now}", f"committer {now}", "", "")
    return "\n".join(head).encode("ascii") + message


def snapshot_from(id_: str, commit: bytes) -> Snapshot:
    """Return the snapshot that a commit holds.

    Args:
        id_: Of the commit.
        commit: The object, as `git cat-file commit` prints it.

    Raises:
        ValueError: It holds none.
    """
    head, _, message = commit.partition(b"\n\n")
    kind, _, tree = head.partition(b"\n")[0].decode("ascii").partition(" ")
    data = json.loads(message)
    match data:
        case {"left_out": dict(left_out), "modes": modes} if kind == "tree":
            reasons = {str(key): str(why) for key, why in left_out.items()}
            empty = data.get("empty")  # which a snapshot of an older panpan does not say
            folders = frozenset(map(str, empty)) if isinstance(empty, list) else frozenset()
            return Snapshot(id_, tree, modes_from(modes), reasons, folders)
        case _:
            raise ValueError("the commit holds no snapshot")
