"""Output of a command in a file: its beginning as it comes, and its end; what lies between is counted and left out."""

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from panpan.errors import OutputError

MAX_HEAD_BYTES = 8_000_000
MAX_TAIL_BYTES = 8_000_000


class KeptOutput:
    """Keeps an output in a file, in place of one that is there. Used as a context, which writes the end.

    Args:
        path: The file.
        max_head_bytes: Bytes of the beginning to keep.
        max_tail_bytes: Bytes of the end to keep.
    """

    def __init__(
        self, path: Path, *, max_head_bytes: int = MAX_HEAD_BYTES, max_tail_bytes: int = MAX_TAIL_BYTES
    ) -> None:
        self._path = path
        self._room = max_head_bytes
        self._max_tail_bytes = max_tail_bytes
        self._tail = bytearray()
        self._after_head = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self._path.unlink(missing_ok=True)  # it may have become a link
            self._file = self._path.open("xb", buffering=0)
        except OSError as error:
            raise self._failure(error) from error
        return self

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            OutputError: The file cannot be written.
        """
        head, rest = data[: self._room], data[self._room :]
        self._room -= len(head)
        self._write(head)
        self._after_head += len(rest)
        self._tail += rest
        if len(self._tail) > 2 * self._max_tail_bytes:  # cut rarely, since each cut copies
            del self._tail[: -self._max_tail_bytes]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the end, also of a command that was stopped.

        Raises:
            OutputError: It cannot be written, and nothing else is wrong.
        """
        tail = bytes(self._tail[-self._max_tail_bytes :])
        left_out = self._after_head - len(tail)
        note = f"\n[{left_out:,} bytes are left out here]\n".encode() if left_out else b""
        try:
            self._write(note + tail)
        except OutputError:
            if error is None:
                raise
        finally:
            if self._file is not None:
                self._file.close()

    def _write(self, data: bytes) -> None:
        assert self._file is not None, "it is used as a context"
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> OutputError:
        return OutputError(f"{self._path} cannot be written: {error.strerror}")
