"""Which files the model has read in this session, and what was in them.

An edit of a file that the model has not read, or that has changed since, would be made blindly; the file tools ask here
first. It belongs to a session, is kept in memory, and starts empty.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from pathlib import Path

from panpan.types.dataclass import dataclass


def digest_of(data: bytes) -> bytes:
    """Return the digest by which two contents of a file are told apart."""
    return blake2b(data, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Sight:
    """What the model saw of a file, and when."""

    digest: bytes
    number: int
    """Tells one sight from another: the same content read again is another one."""


class SeenFiles:
    """What the model has seen of files, by canonical path."""

    def __init__(self) -> None:
        self._sights: dict[Path, Sight] = {}
        self._numbers = count(1)

    def saw(self, path: Path, data: bytes) -> None:
        """Note that the model knows `data` to be the content of the file at the canonical `path`."""
        sight = Sight(digest_of(data), next(self._numbers))
        self._sights.pop(path, None)  # so that it becomes the newest
        self._sights[path] = sight

    def digest(self, path: Path) -> bytes | None:
        """Return the digest of what the model last saw at `path`, or None where it has not read it."""
        sight = self._sights.get(path)
        return sight.digest if sight is not None else None

    def newest(self, most: int) -> Sequence[tuple[Path, Sight]]:
        """Return the files that the model has seen last, the newest first, `most` at most."""
        return list(self._sights.items())[-most:][::-1]

    def clear(self) -> None:
        """Note that the model knows no file any more, since what it read is not in its conversation."""
        self._sights.clear()

    def forget(self, path: Path) -> None:
        """Note that the file is gone."""
        self._sights.pop(path, None)
