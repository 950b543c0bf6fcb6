"""Whether a file of weights is what it must be: its SHA-256, and a stamp that spares reading it again.

The rule: a stamp is made of a file that was read whole and did not change meanwhile.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Self

from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

_STEP_BYTES = 32 << 20
"""Read between two looks at the progress: some 40 ms."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a file that was verified from one that was changed since."""

    sha256: str
    size_bytes: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result, digest: str) -> Self:
        """Return the stamp of a file with this status and content."""
        return cls(digest, status.st_size, status.st_mtime_ns, status.st_ino)


class Verification:
    """Reads a file to its end for its SHA-256, a step at a time, so that somebody can watch and stop it.

    Args:
        path: The file.

    Raises:
        ConfigError: It cannot be opened, or is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0)
            self._before = os.fstat(self._file.fileno())
        if not stat.S_ISREG(self._before.st_mode):
            self._file.close()
            raise ConfigError(f"{path} is not a regular file; move it away")
        self._digest = sha256()
        self.done_bytes = 0
        self.stamp: Stamp | None = None
        """What was found, once the file was read to its end; None also if it was changed meanwhile."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def step(self) -> bool:
        """Read on, and return whether there is more; blocks for some tens of milliseconds.

        Raises:
            ConfigError: It cannot be read.
        """
        with self._told():
            chunk = self._file.read(_STEP_BYTES)
        if chunk:
            self._digest.update(chunk)
            self.done_bytes += len(chunk)
            return True
        digest = self._digest.hexdigest()
        before, after = Stamp.of(self._before, digest), Stamp.of(os.fstat(self._file.fileno()), digest)
        self.stamp = after if before == after else None
        return False

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise ConfigError(f"cannot read the model's weights {self._path}: {exc.strerror}") from exc
