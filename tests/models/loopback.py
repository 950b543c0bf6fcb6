"""A server on the loopback that gives prepared answers, byte for byte, and keeps what it was asked."""

import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener


class Stall:
    """In place of a chunk: send nothing more, and keep the connection open until the client leaves."""


@dataclass
class Answer:
    """Body that the server sends: the chunks one by one, those of a tuple in one write, and its end."""

    chunks: Sequence[bytes | Stall | tuple[bytes, ...]] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    is_cut: bool = False
    """True if the connection breaks before the body is whole."""
    is_silent: bool = False
    """True if not even the headers are sent."""


@dataclass
class Request:
    """Request that the server got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Loopback:
    """The running server."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    asked: anyio.Event = field(default_factory=anyio.Event)
    """Set when a request came."""
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client left a stalled answer."""


@asynccontextmanager
async def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Loopback]:
    """Serve the answers in turn, the last one again and again."""
    server = Loopback()
    pending = list(answers)

    async def handle(stream: ByteStream) -> None:
        server.connections += 1
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                while True:
                    server.requests.append(await _read_request(stream))
                    server.asked.set()
                    await _send(stream, pending.pop(0) if len(pending) > 1 else pending[0], server)

    failure: Exception | None = None
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.start_soon((TLSListener(listener, tls) if tls else listener).serve, handle)
        try:
            yield server
        except Exception as exc:  # goes on bare, not in the group's exception group
            failure = exc
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _read_request(stream: ByteStream) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    return Request(first.split(" ")[1], headers, body)


async def _send(stream: ByteStream, answer: Answer, server: Loopback) -> None:
    if answer.is_silent:
        await _wait_until_left(stream, server)
    head = [f"HTTP/1.1 {answer.status} Whatever", "transfer-encoding: chunked"]
    head += [f"{name}: {value}" for name, value in answer.headers.items()]
    await stream.send(("\r\n".join(head) + "\r\n\r\n").encode())
    for chunk in answer.chunks:
        if isinstance(chunk, Stall):
            await _wait_until_left(stream, server)
        elif chunk:
            together = chunk if isinstance(chunk, tuple) else (chunk,)
            await stream.send(b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in together))
    if answer.is_cut:
        raise anyio.EndOfStream
    await stream.send(b"0\r\n\r\n")


async def _wait_until_left(stream: ByteStream, server: Loopback) -> None:
    try:
        await stream.receive()
    finally:
        server.left.set()
