"""Lines, put together from the pieces in which a pipe or a socket brings them."""

from collections.abc import Iterator


class LineTooLongError(ValueError):
    """A line has more bytes than are taken; where the next one begins is not known."""


class LineSplitter:
    """Puts pieces together to lines.

    Args:
        max_bytes: Most bytes of a line.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._searched = 0

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of the line that has begun."""
        return len(self._buffer)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that a piece completes, without their ends; blank ones are left out.

        Raises:
            LineTooLongError: A line is too long; those before it were yielded.
        """
        self._buffer += piece
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if line.strip():
                yield line
        self._searched = len(self._buffer)
        if self._searched > self._max_bytes:
            raise LineTooLongError
