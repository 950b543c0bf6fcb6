"""Writing to standard output without ever stopping the event loop.

A reader may be slow (`| less`) or gone (`| head`). A blocking write would keep the loop from seeing an interrupt, and a
thread costs more than most writes; so a write happens when the other end has room, in pieces that fit. A reader that is
gone is a `BrokenPipeError`, once: what is left is dropped then, and nothing can fail again at exit.
"""

import errno
import os
import select
from typing import TextIO

import anyio

from panpan.errors import OutputError

PIECE = 4096
"""A pipe that polls as writable takes PIPE_BUF bytes without blocking; 4,096 on Linux, and macOS takes 512 at least."""


def drop_what_follows(fd: int) -> None:
    """Let what is written from now on, by Python's own flush at exit too, go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)


def drop_terminal() -> None:
    """Let what is written to a terminal that is gone go nowhere: standard output, and standard error if it is there."""
    if os.path.sameopenfile(1, 2):
        drop_what_follows(2)
    drop_what_follows(1)


class StdoutWriter:
    """Writes text to a stream's file descriptor.

    Args:
        stream: Usually `sys.stdout`; what it buffers itself is written first.
    """

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._fd = stream.fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._piece = min(PIECE, select.PIPE_BUF)
        self.is_terminal = stream.isatty()

    async def write(self, text: str) -> None:
        """Write `text` as UTF-8; half surrogates become question marks.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OutputError: It cannot be written, as on a full disk.
        """
        data = memoryview(text.encode(errors="replace"))
        while data:
            if not self._poll.poll(0):
                await anyio.wait_writable(self._fd)
            try:
                data = data[os.write(self._fd, data[: self._piece]) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            except OSError as error:
                drop_what_follows(self._fd)
                if error.errno in (errno.EPIPE, errno.EIO, errno.ENXIO):  # a reader, or a terminal, that is gone
                    raise BrokenPipeError(error.errno, error.strerror) from error
                raise OutputError(f"cannot write the output: {error.strerror}") from error
