"""A server on the loopback that gives prepared answers, byte for byte, and keeps what it was asked."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream


class Stall:
    """In place of a chunk: send nothing more and keep the connection open."""


@dataclass
class Answer:
    """What the server sends: the chunks one by one, and then the end of the connection."""

    chunks: Sequence[bytes | Stall] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    is_cut: bool = False
    """Whether the connection breaks before the body is whole."""


@dataclass
class Request:
    """What the server was sent."""

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


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Loopback]:
    """Serve the answers in turn, the last one again and again."""
    server = Loopback()
    pending = list(answers)

    async def handle(stream: SocketStream) -> None:
        async with stream:
            try:
                server.requests.append(await _read_request(stream))
                answer = pending.pop(0) if len(pending) > 1 else pending[0]
                await _send(stream, answer)
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                pass

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.start_soon(listener.serve, handle)
        yield server
        group.cancel_scope.cancel()


async def _read_request(stream: SocketStream) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    return Request(first.split(" ")[1], headers, body)


async def _send(stream: SocketStream, answer: Answer) -> None:
    head = [f"HTTP/1.1 {answer.status} Whatever", "connection: close", "transfer-encoding: chunked"]
    head += [f"{name}: {value}" for name, value in answer.headers.items()]
    await stream.send(("\r\n".join(head) + "\r\n\r\n").encode())
    for chunk in answer.chunks:
        if isinstance(chunk, Stall):
            await anyio.sleep_forever()
        elif chunk:
            await stream.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
    if not answer.is_cut:
        await stream.send(b"0\r\n\r\n")
