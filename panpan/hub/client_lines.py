"""Lines of clients, within bounds: any number of clients may send small ones, and a few at a time large ones.

The rule: a line that is not whole yet costs memory. A client whose line would cost too much is told so and dropped.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from panpan.hub.wire import MAX_LINE_BYTES, WireError, too_long
from panpan.system.text.lines import LineSplitter, LineTooLongError

SMALL_LINE_BYTES = 500_000
"""Most bytes of an unfinished line that counts as a small one; only a prompt with pictures is larger."""
MAX_LARGE_LINES = 4
"""Most large lines that may be unfinished at a time."""


class ClientLines:
    """Lines of one client.

    Args:
        memory: Memory of all clients.
    """

    def __init__(self, memory: "LineMemory") -> None:
        self._memory = memory
        self._splitter = LineSplitter(memory.max_line_bytes)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that a piece completes.

        Raises:
            WireError: The unfinished line is too long, or too many clients send large ones.
        """
        try:
            yield from self._splitter.feed(piece)
        except LineTooLongError:
            raise too_long(self._memory.max_line_bytes) from None
        self._memory.hold(self, self._splitter.unfinished_bytes)


class LineMemory:
    """Bounds the memory of unfinished lines over all clients of a session.

    Args:
        max_line_bytes: Most bytes of a line.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.max_line_bytes = max_line_bytes
        self._large: set[ClientLines] = set()

    @contextmanager
    def lines(self) -> Iterator[ClientLines]:
        """Take lines of a further client inside the block."""
        lines = ClientLines(self)
        try:
            yield lines
        finally:
            self._large.discard(lines)

    def hold(self, lines: ClientLines, size: int) -> None:
        """Note the size of a client's unfinished line in bytes.

        Raises:
            WireError: It is large, and so are too many others.
        """
        if size <= SMALL_LINE_BYTES:
            self._large.discard(lines)
        elif lines not in self._large and len(self._large) >= MAX_LARGE_LINES:
            raise WireError(f"{MAX_LARGE_LINES} other clients are sending large prompts; send this one again later")
        else:
            self._large.add(lines)
