"""A proxy on the loopback, and the servers that stand for public ones: nothing here leaves this machine."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio import EndOfStream
from anyio.abc import ByteStream, SocketStream

from panpan.errors import ToolError
from panpan.system.sandbox.domain_grants import DomainGrants, Route
from panpan.system.sandbox.proxy_connection import ProxyConnection, Waits
from panpan.system.url_guard import Authority

PUBLIC = "93.184.216.34"
OTHER = "8.8.8.8"


@dataclass
class Network:
    """What names lead to, and which servers of this machine stand for which addresses."""

    names: dict[str, Sequence[str]] = field(default_factory=lambda: {"example.org": [PUBLIC]})
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """By address and port: the port on 127.0.0.1 where that server is."""
    asked: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise ToolError(f"{host} has no address that can be found")
        return self.names[host]

    async def dial(self, address: str, port: int) -> ByteStream:
        self.dialled.append((address, port))
        if (address, port) not in self.ports:
            raise ConnectionRefusedError
        return await anyio.connect_tcp("127.0.0.1", self.ports[address, port])


Serve = Callable[[SocketStream], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve) -> AsyncGenerator[int, None]:
    """Serve each connection to a port of 127.0.0.1, and yield the port."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            try:
                await serve(stream)
            except (anyio.BrokenResourceError, EndOfStream):
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as task_group:
        task_group.start_soon(listener.serve, answer)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        task_group.cancel_scope.cancel()


@dataclass
class Server:
    """A server that keeps what it is sent, and answers when a request's head and `body_bytes` more have come."""

    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    until: bytes = b"\r\n\r\n"
    received: list[bytes] = field(default_factory=list)
    """By connection."""

    async def serve(self, stream: SocketStream) -> None:
        number = len(self.received)
        self.received.append(b"")
        while self.until not in self.received[number]:
            self.received[number] += await stream.receive()
        await stream.send(self.answer)
        await stream.send_eof()
        async for chunk in stream:
            self.received[number] += chunk


@asynccontextmanager
async def proxying(
    network: Network, domains: Sequence[str] = ("example.org",), *, waits: Waits | None = None
) -> AsyncGenerator[tuple[int, list[ToolError]], None]:
    """Run a proxy on a port of 127.0.0.1, and yield it with what it refused."""
    grants = DomainGrants(domains)
    refusals: list[ToolError] = []

    async def find_route(asked: Authority, default_port: int) -> Route:
        return await grants.route(asked, default_port, network.resolve)

    async def serve(stream: SocketStream) -> None:
        connection = ProxyConnection(
            stream, find_route=find_route, dial=network.dial, note=refusals.append, waits=waits or Waits()
        )
        await connection.serve()

    async with serving(serve) as port:
        yield port, refusals


async def said_to(port: int, request: bytes) -> bytes:
    """Send bytes to a port of 127.0.0.1, and return all that comes until the end."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        try:
            await stream.send(request)
            return await rest_of(stream)
        except anyio.BrokenResourceError:
            return b""


async def rest_of(stream: ByteStream) -> bytes:
    """Return what comes until the end, or until the other side resets the connection."""
    received = bytearray()
    try:
        async for chunk in stream:
            received += chunk
    except anyio.BrokenResourceError:
        pass
    return bytes(received)


def head_of(request: bytes) -> tuple[bytes, Mapping[bytes, bytes]]:
    """Return the first line and the headers, each of which may stand only once."""
    line, *lines = request.partition(b"\r\n\r\n")[0].split(b"\r\n")
    pairs = [header.split(b": ", 1) for header in lines]
    headers = {name.lower(): value for name, value in pairs}
    assert len(headers) == len(pairs)
    return line, headers
