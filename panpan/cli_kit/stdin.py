"""Standard input, read without a thread: a thread that waits for input cannot be stopped and would delay the exit."""

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
"""Most bytes of a piped prompt; an endless input (`yes |`) stops here."""


class StdinReader:
    """Reads from a stream's file descriptor; lines and the rest may be read in turn.

    Args:
        stream: Usually `sys.stdin`; nothing may have been read from it yet.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream  # kept, since a collected stream closes its descriptor
        self._fd = stream.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._buffer = bytearray()
        self._has_ended = False

    async def rest(self, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Return everything until the end of the input.

        Raises:
            ConfigError: The input is longer than any model could read.
        """
        while chunk := await self._chunk():
            self._buffer += chunk
            if len(self._buffer) > max_bytes:
                raise ConfigError(
                    f"more than {max_bytes:,} bytes are piped in; put them into a file and name it in the prompt"
                )
        return self._take(len(self._buffer))

    async def line(self, *, max_bytes: int | None = None) -> bytes | None:
        """Return the next line with its line end, or None at the end of the input; the last line may lack one.

        Raises:
            ConfigError: The line has more than `max_bytes`.
        """
        if b"\n" not in self._buffer:
            while chunk := await self._chunk():
                self._buffer += chunk
                if b"\n" in chunk:
                    break
                if max_bytes is not None and len(self._buffer) > max_bytes:
                    raise ConfigError(f"a line of the input is longer than {max_bytes:,} bytes; send it in parts")
        return self._take(self._buffer.find(b"\n") + 1 or len(self._buffer)) or None

    async def skip_line(self) -> None:
        """Read to the end of a line, and forget it, as of one that is too long."""
        while (end := self._buffer.find(b"\n")) < 0:
            self._buffer.clear()
            if not (chunk := await self._chunk()):
                return
            self._buffer += chunk
        del self._buffer[: end + 1]

    async def has_more(self, *, within_s: float) -> bool:
        """Return True if there is something to read within `within_s` seconds; an unread end of input counts."""
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
        """Read the unfinished line that a terminal holds, and return True if there was one.

        A terminal gives out whole lines only. The unfinished last line of a paste would go to the next prompt.
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
        """Read on after a Ctrl+D on a terminal, as for the answer to one more question."""
        self._has_ended = self._has_ended and not os.isatty(self._fd)

    def forget(self) -> None:
        self._buffer.clear()

    def flush_terminal(self) -> None:
        """Make a terminal forget all unread input, including a half-typed line."""
        with suppress(termios.error):  # it was closed
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def _take(self, size: int) -> bytes:
        with memoryview(self._buffer) as view:
            taken = bytes(view[:size])
        del self._buffer[:size]
        return taken

    async def _chunk(self) -> bytes:
        """Return the bytes that have arrived, or b"" at the end; a terminal's Ctrl+D is the end until `go_on`."""
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
