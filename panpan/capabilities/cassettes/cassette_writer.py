"""Writes a recorded cassette, line by line, into a private file of its own.

The rules: a file that exists is never touched; each line is written at once, without secrets; and where a line cannot
be written, because the disk is full or the file too long, the recording ends there and says so, while the session goes
on.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from panpan.capabilities.cassettes.recorded_file import MAX_BYTES
from panpan.errors import ConfigError
from panpan.session.records import encoded
from panpan.system.files.private import open_private_file

ROOM_FOR_END = 10_000
"""Bytes that are kept for the line that says why a recording ended."""


class CassetteWriter:
    """One file; made with the first line.

    Args:
        path: The file; must not exist.
        warn: Told why the recording ended early, in one sentence.
        max_bytes: Most that is written.

    Raises:
        ConfigError: The file exists, or its folder does not.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], *, max_bytes: int = MAX_BYTES) -> None:
        if os.path.lexists(path):
            raise ConfigError(f"{path} exists already; record into another file, or remove it first")
        if not path.parent.is_dir():
            raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}")
        self.path = path
        self._warn = warn
        self._bytes_left = max_bytes - ROOM_FOR_END
        self._fd: int | None = None
        self.is_over = False
        """Whether no more is written."""

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line, or end the recording if that is not possible."""
        if self.is_over:
            return
        data = encoded(line)
        try:
            if self._fd is None:
                self._fd = open_private_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            if len(data) > self._bytes_left:
                self._end("it has become too long")
                return
            self._bytes_left -= len(data)
            self._write(data)
        except FileExistsError:
            self._end("another program has made a file of this name", has_file=False)
        except (OSError, ConfigError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._end(f"it cannot be written: {reason}", has_file=False)

    def close(self) -> None:
        """Make what was written durable, and give the file back."""
        self.is_over = True
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            os.fsync(fd)
        except OSError as error:
            self._warn(f"the cassette {self.path} may not be on disk: {error.strerror}")
        finally:
            os.close(fd)

    def _write(self, data: bytes) -> None:
        assert self._fd is not None
        written = 0
        while written < len(data):
            written += os.write(self._fd, data[written:])

    def _end(self, reason: str, *, has_file: bool = True) -> None:
        self.is_over = True
        self._warn(f"the recording into {self.path} ends here: {reason}; what was recorded before can be played")
        if has_file:
            self._write(encoded({"type": "cassette_end", "reason": reason}))
