"""Reading standard input without a thread: one that waits for input could not be ended, and would hold the exit."""

import os
import select
import termios
from typing import TextIO

import anyio

from panpan.errors import ConfigError

CHUNK = 1 << 16

MAX_BYTES = 200_000_000
"""Of a prompt that is piped in; an input without an end (`yes |`) stops here."""


class StdinReader:
    """Reads from a stream's file descriptor; lines and the rest may be read in turn.

    Args:
        stream: Usually `sys.stdin`; nothing may have been read from it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream  # kept, since a stream that is forgotten closes its descriptor
        self._fd = stream.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._buffer = b""
        self._has_ended = False
        self._is_terminal = stream.isatty()

    async def rest(self, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Return everything until the end of the input.

        Raises:
            ConfigError: It is longer than any model could read.
        """
        chunks, size = [self._buffer], len(self._buffer)
        self._buffer = b""
        while chunk := await self._chunk():
            chunks.append(chunk)
            size += len(chunk)
            if size > max_bytes:
                raise ConfigError(
                    f"more than {max_bytes:,} bytes are piped in; put them into a file and name it in the prompt"
                )
        return b"".join(chunks)

    async def line(self) -> bytes | None:
        """Return the next line with its end, or None where the input has ended; the last line may lack its end."""
        chunks = [self._buffer]
        while b"\n" not in chunks[-1] and (chunk := await self._chunk()):
            chunks.append(chunk)
        line, end, self._buffer = b"".join(chunks).partition(b"\n")
        return line + end or None

    def drop_typed_ahead(self) -> None:
        """Forget what was typed before now and not read yet; nothing is forgotten of a pipe or a file."""
        if self._is_terminal:
            self._buffer = b""
            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def _chunk(self) -> bytes:
        """Return what has come, or b"" at the end; a terminal's end of input (Ctrl+D) counts once and for all."""
        if self._has_ended:
            return b""
        if not self._poll.poll(0):  # a file is always ready, and cannot be waited for
            await anyio.wait_readable(self._fd)
        chunk = _read(self._fd)
        self._has_ended = not chunk
        return chunk


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK)
    except OSError:  # a terminal that was closed
        return b""
