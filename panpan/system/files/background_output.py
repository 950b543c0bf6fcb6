"""What a process prints that runs on after the command that started it.

The rule: its pipe is read as long as somebody can write to it, whatever becomes of the file. A pipe that nobody reads
ends the process at its next line (SIGPIPE), and one that is full stops it.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from panpan.errors import ConfigError
from panpan.system.files.private import make_private_folder, open_private_file
from panpan.system.text.known_keys import KeyStream

_CHUNK_BYTES = 1 << 16
_DROP_PAUSE_S = 0.05
"""Between two reads of what nobody keeps, so that a process which prints without end does not take our time, too."""


def keep_reading(pipe: int, path: Path, keys: KeyStream, *, max_bytes: int) -> str:
    """Let a thread read a pipe to its end and write what comes into a new file.

    The thread ends with the last process that holds the pipe, or with ours.

    Args:
        pipe: Descriptor of the reading end; it is taken over, and closed at the end.
        path: The file; its folder is made where it is missing.
        keys: Takes the keys out.
        max_bytes: What the file holds at most; the rest is read and dropped.

    Returns:
        Where the output goes, in words.
    """
    try:
        make_private_folder(path.parent)
        file = open_private_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        place = f"goes to {path}"
    except (ConfigError, OSError) as exc:
        file = -1
        place = f"is dropped: {exc}"
    os.set_blocking(pipe, True)
    reader = _Reader(pipe, file, keys, max_bytes)
    threading.Thread(target=reader.run, name="panpan-background-output", daemon=True).start()
    return place


class _Reader:
    """Copies one pipe into one file."""

    def __init__(self, pipe: int, file: int, keys: KeyStream, max_bytes: int) -> None:
        self._pipe = pipe
        self._file = file
        """Negative once nothing is written any more."""
        self._keys = keys
        self._room = max_bytes

    def run(self) -> None:
        """Read until nobody can write."""
        try:
            while chunk := os.read(self._pipe, _CHUNK_BYTES):
                self._write(self._keys.feed(chunk))
                if self._file < 0:
                    time.sleep(_DROP_PAUSE_S)
            self._write(self._keys.finish())
        finally:
            self._close_file()
            os.close(self._pipe)

    def _write(self, data: bytes) -> None:
        if self._file < 0:
            return
        try:
            self._put(data[: self._room])
            if len(data) > self._room:
                self._put(b"\n[the file is full; what comes after this is dropped]\n")
                self._close_file()
        except OSError:  # the disk is full, say; the process shall not suffer from it
            self._close_file()
        self._room -= len(data)

    def _put(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):
                os.close(file)
