"""An archive's bytes, of which its reader gets no more at a time than the lists in it may need.

The rule: what an archive says of itself is bounded before it is read. The modules of the standard library read the
headers of a member, or the list of all of them, into memory as large as the archive says that they are.
"""

from typing import IO

from panpan.errors import ToolError


class BoundedStream:
    """A file to be read, with as much of the interface of one as `tarfile` and `zipfile` use.

    Args:
        stream: What is read.
        left: Bytes that may be read at first; None: any number.
        is_counted_when_skipped: Whether what is skipped counts as read: it has to be unpacked all the same.
    """

    def __init__(self, stream: IO[bytes], left: int | None, *, is_counted_when_skipped: bool = False) -> None:
        self._stream = stream
        self.left = left
        self._is_counted_when_skipped = is_counted_when_skipped

    def read(self, size: int = -1) -> bytes:
        """Read as a file does.

        Raises:
            ToolError: It is more than is left.
        """
        if size < 0 and self.left is not None:
            data = self._stream.read(self.left + 1)
            self._count(len(data))
            return data
        self._count(size)
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek as a file does.

        Raises:
            ToolError: It would skip more than is left.
        """
        if self._is_counted_when_skipped and whence == 0:
            self._count(max(0, offset - self._stream.tell()))
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position, as a file does."""
        return self._stream.tell()

    def seekable(self) -> bool:
        """Return that it can seek."""
        return True

    def close(self) -> None:
        """Leave the stream open: who opened it closes it."""

    def _count(self, size: int) -> None:
        if self.left is None:
            return
        if size > self.left:
            raise ToolError("it lists or says more of its content than can be held in memory")
        self.left -= size
