"""Which files the model has read in this session, and what was in them.

An edit of a file that the model has not read, or that has changed since, would be made blindly; the file tools ask here
first. It belongs to a session, is kept in memory, and starts empty.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path


def digest_of(data: bytes) -> bytes:
    """Return the digest by which two contents of a file are told apart."""
    return blake2b(data, digest_size=16).digest()


class SeenFiles:
    """Digests of the files that the model has seen, by canonical path."""

    def __init__(self) -> None:
        self._digest_by_path: dict[Path, bytes] = {}

    def saw(self, path: Path, data: bytes) -> None:
        """Note that the model knows `data` to be the content of the file at the canonical `path`."""
        digest = digest_of(data)
        self._digest_by_path.pop(path, None)  # so that it becomes the newest
        self._digest_by_path[path] = digest

    def digest(self, path: Path) -> bytes | None:
        """Return the digest of what the model last saw at `path`, or None where it has not read it."""
        return self._digest_by_path.get(path)

    def newest(self, most: int) -> Sequence[Path]:
        """Return the files that the model has seen last, the newest first, `most` at most."""
        return list(self._digest_by_path)[-most:][::-1]

    def clear(self) -> None:
        """Note that the model knows no file any more, since what it read is not in its conversation."""
        self._digest_by_path.clear()

    def forget(self, path: Path) -> None:
        """Note that the file is gone."""
        self._digest_by_path.pop(path, None)
