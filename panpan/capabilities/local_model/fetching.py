"""What fetching weights means: a source adds to the end of a partial file until that is whole.

The rule: every source has the same bytes, so that one goes on where another stopped; and whatever goes wrong, the
partial file holds nothing but what belongs there, for the next try.
"""

import errno
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from panpan.errors import PanpanError
from panpan.system.files.folder_tree import open_private_file

SETUP_COMMAND = "panpan local setup"

_DISK_IS_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FetchError(PanpanError):
    """The weights could not be fetched; what was fetched of them is kept."""


class SourceUnavailableError(FetchError):
    """One source cannot be reached, or does not have the weights; another one may."""


class Source(Protocol):
    """A place that may have the weights."""

    @property
    def title(self) -> str:
        """What people call it."""
        ...

    @property
    def scratch_bytes(self) -> int:
        """Space that it needs on the disk besides the weights."""
        ...

    def fetch(self, partial: "PartialFile") -> AsyncGenerator[int, None]:
        """Make the partial file whole, and yield how much is there as it grows. Consume it under `aclosing`.

        Raises:
            SourceUnavailableError: The place cannot be reached or does not have the weights.
            FetchError: Fetching cannot go on, from whatever place.
        """
        ...


class PartialFile:
    """The weights as far as they were fetched; grows at its end. Only for the holder of the lock.

    Args:
        path: The partial file; made where it is missing.
        size_bytes: What it will have when it is whole.

    Raises:
        FetchError: It cannot be opened.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self.size_bytes = size_bytes
        try:
            self._fd = open_private_file(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as exc:
            raise FetchError(f"cannot open {self._path}: {exc.strerror}") from exc
        self.length = os.fstat(self._fd).st_size
        if self.length > self.size_bytes:
            self.cut(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._fd)

    @property
    def is_whole(self) -> bool:
        return self.length == self.size_bytes

    def append(self, data: bytes | bytearray) -> None:
        """Add what comes next.

        Raises:
            FetchError: The disk is full or failed; what was written before is kept.
        """
        rest = memoryview(data)
        with _told(self._path):
            while rest:
                written = os.pwrite(self._fd, rest, self.length)
                self.length += written
                rest = rest[written:]

    def cut(self, length: int) -> None:
        """Forget all behind the first `length` bytes.

        Raises:
            FetchError: The disk failed.
        """
        with _told(self._path):
            os.ftruncate(self._fd, length)
            self.length = length

    def sync(self) -> None:
        """Return when all of it is on the disk.

        Raises:
            FetchError: The disk failed.
        """
        with _told(self._path):
            os.fsync(self._fd)


def disk_is_full(path: Path) -> FetchError:
    """Return what to say when there is no space left in the folder of `path`."""
    return FetchError(f"the disk of {path.parent} is full; make space and run {SETUP_COMMAND} again, which goes on")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in _DISK_IS_FULL:
            raise disk_is_full(path) from exc
        raise FetchError(f"cannot write {path}: {exc.strerror}") from exc
