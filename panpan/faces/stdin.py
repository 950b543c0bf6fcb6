"""Reading standard input without a thread: one that waits for input could not be ended, and would hold the exit."""

import os
import select
import termios
from contextlib import suppress
from typing import TextIO

import anyio
from anyio.lowlevel import checkpoint

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
        self._buffer = bytearray()
        self._has_ended = False

    async def rest(self, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Return everything until the end of the input.

        Raises:
            ConfigError: It is longer than any model could read.
        """
        while chunk := await self._chunk():
            self._buffer += chunk
            if len(self._buffer) > max_bytes:
                raise ConfigError(
                    f"more than {max_bytes:,} bytes are piped in; put them into a file and name it in the prompt"
                )
        return self._take(len(self._buffer))

    async def line(self) -> bytes | None:
        """Return the next line with its end, or None where the input has ended; the last line may lack its end."""
        if b"\n" not in self._buffer:
            while chunk := await self._chunk():
                self._buffer += chunk
                if b"\n" in chunk:
                    break
        return self._take(self._buffer.find(b"\n") + 1 or len(self._buffer)) or None

    async def has_more(self, *, within_s: float) -> bool:
        """Return whether there is something to read within so many seconds; its end counts until it was read."""
        if self._buffer or self._has_ended:
            return bool(self._buffer)
        if self._poll.poll(0):  # a file is always ready, and cannot be waited for
            await checkpoint()
            return True
        with anyio.move_on_after(within_s):
            await anyio.wait_readable(self._fd)
            return True
        return False

    def take_begun_line(self) -> bool:
        """Read what a terminal holds of a line whose end is not typed yet, and return whether there was something.

        A terminal gives out whole lines only; a paste that ends within a line would lose that part to the next prompt.
        """
        with suppress(termios.error):  # it was closed
            as_it_was = termios.tcgetattr(self._fd)
            without_lines = [*as_it_was]
            without_lines[3] &= ~termios.ICANON
            termios.tcsetattr(self._fd, termios.TCSANOW, without_lines)
            try:
                if self._poll.poll(0):
                    self._buffer += _read(self._fd)
            finally:
                termios.tcsetattr(self._fd, termios.TCSANOW, as_it_was)
        return bool(self._buffer)

    def go_on(self) -> None:
        """Read on behind a Ctrl+D on a terminal, as for the answer to one more question."""
        self._has_ended = self._has_ended and not os.isatty(self._fd)

    def forget(self) -> None:
        self._buffer.clear()

    def flush_terminal(self) -> None:
        """Let a terminal forget what it was given and was not read yet, a line that is half typed included."""
        with suppress(termios.error):  # it was closed
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _take(self, size: int) -> bytes:
        with memoryview(self._buffer) as view:
            taken = bytes(view[:size])
        del self._buffer[:size]
        return taken

    async def _chunk(self) -> bytes:
        """Return what has come, or b"" at the end; a terminal's end of input (Ctrl+D) counts until `go_on`."""
        if self._has_ended:
            return b""
        if not self._poll.poll(0):
            await anyio.wait_readable(self._fd)
        chunk = _read(self._fd)
        self._has_ended = not chunk
        return chunk


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK)
    except OSError:  # a terminal that was closed
        return b""
