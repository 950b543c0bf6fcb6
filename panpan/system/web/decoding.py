"""Bodies that a server compressed, made plain again in pieces.

The rule: no piece is large, and a body that grows out of all proportion is an error, so that a few bytes of a server
cannot fill the memory or the disk.
"""

import zlib
from collections.abc import Iterator

from panpan.errors import ToolError

PIECE_BYTES = 262_144
MAX_RATIO = 100
"""Bytes that may come of one; text comes to 3 to 20, tables of zeros to more."""
FREE_BYTES = 10_000_000
"""Bytes that may come of any body before the ratio counts."""

_GZIP_START = b"\x1f\x8b"
_GZIP_WBITS, _ZLIB_WBITS, _RAW_WBITS = 31, 15, -15


class Decoder:
    """Makes one body plain.

    Args:
        coding: As `Content-Encoding` names it: gzip, deflate, or empty for a body that is plain.
        host: Who sends it, for the messages.
    """

    def __init__(self, coding: str, host: str) -> None:
        self._coding = coding
        self._host = host
        self._zlib: zlib._Decompress | None = None
        self._is_garbage = False
        self._taken = 0
        self._given = 0

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what comes of `data`, in pieces of at most `PIECE_BYTES`.

        Raises:
            ToolError: It is not what it is said to be, or grows too much.
        """
        if not self._coding:
            yield data
            return
        self._taken += len(data)
        while data and not self._is_garbage:
            if self._zlib is None or self._zlib.eof:
                self._begin(data)
                continue
            try:
                piece = self._zlib.decompress(data, PIECE_BYTES)
            except zlib.error as exc:
                raise ToolError(f"{self._host} sent a body that is no {self._coding}: {exc}") from exc
            data = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
            if piece:
                self._count(piece)
                yield piece

    def finish(self) -> Iterator[bytes]:
        """Yield what is left at the end of the body.

        Raises:
            ToolError: The body was not whole.
        """
        if self._zlib is None or self._zlib.eof:
            return
        while piece := self._zlib.decompress(b"", PIECE_BYTES):
            self._count(piece)
            yield piece
        if not self._zlib.eof:
            raise ToolError(f"{self._host} ended its answer before it was whole")

    def _begin(self, data: bytes) -> None:
        """Begin a stream; what follows a whole one is another of gzip, or of no meaning (RFC 1952, section 2.2)."""
        is_first = self._zlib is None
        if not is_first and not (self._coding == "gzip" and data.startswith(_GZIP_START[: len(data)])):
            self._is_garbage = True
        elif self._coding == "gzip":
            self._zlib = zlib.decompressobj(_GZIP_WBITS)
        else:  # many servers leave out the frame that RFC 9110, section 8.4.1.2, wants
            self._zlib = zlib.decompressobj(_ZLIB_WBITS if _is_zlib(data) else _RAW_WBITS)

    def _count(self, piece: bytes) -> None:
        self._given += len(piece)
        if self._given > FREE_BYTES + MAX_RATIO * self._taken:
            raise ToolError(
                f"{self._host} sent {self._taken:,} bytes that grow to more than {self._given:,}; that is a bomb, "
                "and was left"
            )


def _is_zlib(data: bytes) -> bool:
    """Whether it begins like RFC 1950, as far as it goes."""
    if len(data) < 2:
        return data[0] & 0x0F == zlib.DEFLATED
    return data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
