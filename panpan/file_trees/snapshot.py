"""What one snapshot is: the content of a folder at a moment, as objects of a repository of panpan's own."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property

from panpan.file_trees.modes import Modes, modes_from
from panpan.types.dataclass import dataclass


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
