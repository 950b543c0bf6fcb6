"""Joins the HTTP chunks that one read of the network brings, and the head and body of a request.

Servers send each piece of a streamed reply in a chunk of its own (RFC 9112, section 7.1), and each chunk passes a dozen
layers of the network library and of panpan by itself. Joined, a read passes them once.

The rule: the library gets the same answer, byte for byte, and finds the same faults: what is unusual passes unchanged.
"""

import re
from socket import socket
from typing import Any

import httpcore2
import httpx2
from httpcore2._utils import is_socket_readable

from panpan.types.pattern import compile_late

_VERSION = b"HTTP/1."
_MAX_HEAD_BYTES = 64 * 1024
_MAX_CHUNK_BYTES = 64 * 1024
"""Longer chunks need no joining, and are not held back until they are whole."""

_MAX_SIZE_DIGITS = 8
_CHUNKED = compile_late(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_WITHOUT_BODY = (b"204", b"304")
_HEAD_OF_BODY = re.compile(rb"POST .*\r\ncontent-length:[ \t]*[1-9].*\r\n\r\n", re.IGNORECASE | re.DOTALL)
"""Head of a request whose body follows."""


class ChunkJoiner:
    """The answers on one connection."""

    def __init__(self) -> None:
        self._read = self._read_head
        self._rest = b""

    def begin(self) -> None:
        """Expect the head of an answer, since a request is sent."""
        if self._read != self._pass_forever:
            self._read = self._read_head

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to read in place of `data`; empty if more have to come first.

        Args:
            data: The bytes of one read; empty at the end.
        """
        if not data:
            data, self._rest = self._rest, b""
            return data
        data, self._rest = self._rest + data, b""
        return self._read(data)

    def _pass(self, data: bytes) -> bytes:
        return data

    def _pass_forever(self, data: bytes) -> bytes:
        return data

    def _read_head(self, data: bytes) -> bytes:
        start = 0
        while (end := data.find(b"\r\n\r\n", start) + 4) >= 4:
            head, status = data[start:end], data[start + 9 : start + 12]
            if not head.startswith(_VERSION) or b"\n\n" in head:
                return self._as_it_is(data)
            start = end
            if status.startswith(b"1") and status != b"101":
                continue  # the answer itself follows
            if status == b"101":  # another protocol follows
                self._read = self._pass_forever
            elif _CHUNKED.search(head) and status not in _WITHOUT_BODY:
                self._read = self._join
            else:
                self._read = self._pass
            return data[:end] + self._read(data[end:])
        rest = data[start:]
        if not rest.startswith(_VERSION[: len(rest)]) or b"\n\n" in rest or len(rest) > _MAX_HEAD_BYTES:
            return self._as_it_is(data)  # such as the handshake with a SOCKS proxy
        self._rest = rest
        return data[:start]

    def _join(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        sizes: dict[bytes, int] = {}  # most chunks of a read have one of a few sizes
        start, length = 0, len(data)
        while (line_end := data.find(b"\r\n", start)) >= 0:
            digits = data[start:line_end]
            size = sizes.get(digits)
            if size is None:
                size = sizes[digits] = _size_of(digits)
            end = line_end + 2 + size
            if not size or (length >= end + 2 and data[end : end + 2] != b"\r\n"):
                return _chunk(parts) + self._as_it_is(data[start:])
            if length < end + 2:
                break
            parts.append(data[line_end + 2 : end])
            start = end + 2
        if line_end < 0 and len(data) - start > _MAX_SIZE_DIGITS + 1:
            return _chunk(parts) + self._as_it_is(data[start:])
        self._rest = data[start:]
        return _chunk(parts)

    def _as_it_is(self, data: bytes) -> bytes:
        """Return the rest of the answer unchanged: its end, or something unusual."""
        self._read = self._pass
        return data


def _size_of(digits: bytes) -> int:
    """Return the size of a chunk by the line before it; 0 for the last chunk, and for what is unusual."""
    if not 0 < len(digits) <= _MAX_SIZE_DIGITS or digits.strip(b"0123456789abcdefABCDEF"):
        return 0
    size = int(digits, 16)
    return size if size <= _MAX_CHUNK_BYTES else 0


def _chunk(parts: list[bytes]) -> bytes:
    if not parts:
        return b""
    data = b"".join(parts)
    return b"%x\r\n%b\r\n" % (len(data), data)


def join_chunks(client: httpx2.AsyncClient) -> None:
    """Make `client` join chunks. Without the expected parts inside it, nothing changes."""
    for transport in (client._transport, *client._mounts.values()):
        pool: Any = getattr(transport, "_pool", None)
        backend = getattr(pool, "_network_backend", None)
        if isinstance(backend, httpcore2.AsyncNetworkBackend):
            pool._network_backend = _Backend(backend)


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, backend: httpcore2.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(*args, **kwargs))

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._backend.connect_unix_socket(*args, **kwargs))

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._joiner = ChunkJoiner()
        self._head = b""
        self._socket: socket | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            data = await self._stream.read(max_bytes, timeout)
            if (joined := self._joiner.feed(data)) or not data:
                return joined

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write a part of a request; its head waits for the body that follows, so that both go out at once."""
        self._joiner.begin()
        if not self._head and _HEAD_OF_BODY.fullmatch(buffer):
            self._head = buffer
            return
        head, self._head = self._head, b""
        await self._stream.write(head + buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(*args, **kwargs))

    def get_extra_info(self, info: str) -> Any:
        """Return what the stream knows; the pool asks each idle connection whether it is readable, at each request."""
        if info != "is_readable":
            return self._stream.get_extra_info(info)
        if self._socket is None:
            self._socket = self._stream.get_extra_info("socket")  # found among many attributes, which takes long
        return is_socket_readable(self._socket)
