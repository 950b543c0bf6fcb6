"""Messages of JSON-RPC as they cross a pipe: a header with the length, then the body (LSP 3.17, base protocol).

The rule: what is no message, or a larger one than could be meant, is an error at once, since nobody can tell where the
next one begins.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAX_BODY_BYTES = 32_000_000
MAX_HEADER_BYTES = 4_096


class FramingError(Exception):
    """What came is no message; the text says why and ends the sentence "the server sent …"."""


def framed(message: Mapping[str, Any]) -> bytes:
    """Return a message as it is sent."""
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    data = body.encode("utf-8", "replace")  # a half of a pair, as in a damaged file, is no text of JSON
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


class FrameReader:
    """Puts the pieces of a stream together."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_bytes: int | None = None
        """Of the message whose header has been read."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a piece, and yield the bodies that are whole now.

        Raises:
            FramingError: It is none of a message.
        """
        self._buffer += chunk
        while True:
            if self._body_bytes is None:
                self._read_header()
            if self._body_bytes is None or len(self._buffer) < self._body_bytes:
                return
            body = bytes(self._buffer[: self._body_bytes])
            del self._buffer[: self._body_bytes]
            self._body_bytes = None
            yield body

    def _read_header(self) -> None:
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
        if end < 0:
            if len(self._buffer) >= MAX_HEADER_BYTES:
                raise FramingError("something that is no message")
            return
        self._body_bytes = _length(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            raise FramingError("something that is no message")
        if name.strip().lower() == b"content-length":
            digits = value.strip()
            if not digits.isdigit() or len(digits) > 12:
                raise FramingError("a message without a length")
            if int(digits) > MAX_BODY_BYTES:
                raise FramingError(f"a message of {int(digits):,} bytes, and at most {MAX_BODY_BYTES:,} are read")
            return int(digits)
    raise FramingError("a message without a length")


def parsed(body: bytes) -> dict[str, Any]:
    """Return what a body says.

    Raises:
        FramingError: It is no object of JSON.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise FramingError("a message that is no JSON") from exc
    if not isinstance(message, dict):
        raise FramingError("a message that is no object")
    return message
