"""What one snapshot is: the content of a folder at a moment, as objects of a repository of panpan's own."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import field

from panpan.services.snapshots.modes import Modes, modes_from
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folder at a moment."""

    id: str
    """Of the commit that holds it."""
    tree: str
    """Of its files and links."""
    modes: Modes = field(default_factory=Modes)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why files are not in it, by path; a path that ends with a slash is a folder."""

    def why_left_out(self, path: str) -> str | None:
        """Return why a file is not kept; None where nothing is known against it."""
        return next((self.left_out[place] for place in _places(path) if place in self.left_out), None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or link of a snapshot."""

    oid: str
    """Of its content; of a link: where it leads."""
    mode: int | None
    """Permission bits; None: it is a link."""


def message_of(modes: Modes, left_out: Mapping[str, str]) -> bytes:
    """Return the message of the commit that holds a snapshot: what git has no place for."""
    return json.dumps({"modes": modes.as_json(), "left_out": dict(left_out)}).encode("ascii") + b"\n"


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
    if kind != "tree" or not isinstance(data, dict) or not isinstance(left_out := data.get("left_out"), dict):
        raise ValueError("the commit holds no snapshot")
    return Snapshot(id_, tree, modes_from(data.get("modes")), {str(key): str(why) for key, why in left_out.items()})


def _places(path: str) -> Iterable[str]:
    """Yield a path and the folders above it."""
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield f"{path}/"
