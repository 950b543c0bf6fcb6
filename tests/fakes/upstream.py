"""An upstream proxy, over HTTP or SOCKS5; all hosts behind it are local servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
from anyio import EndOfStream
from anyio.abc import ByteStream


@dataclass
class Upstream:
    """Connects `host:port` to ports of 127.0.0.1, and keeps the requests."""

    ports: Mapping[str, int]
    login: tuple[str, str] | None = None
    """User and password that it requires over SOCKS5."""
    answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n"
    """Answer to CONNECT."""
    asked: list[bytes] = field(default_factory=list)
    """Heads of requests, or destinations over SOCKS5."""

    async def serve_http(self, stream: ByteStream) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += await stream.receive()
        self.asked.append(request)
        method, target, _ = request.partition(b"\r\n")[0].split(b" ")
        if method != b"CONNECT":
            place = target.removeprefix(b"http://").partition(b"/")[0].decode()
            await self._lead(stream, place if ":" in place else f"{place}:80", request)
            return
        await stream.send(self.answer)
        if self.answer.startswith(b"HTTP/1.1 200"):
            await self._lead(stream, target.decode(), b"")

    async def serve_socks(self, stream: ByteStream) -> None:
        _, count = await exactly(stream, 2)
        methods = await exactly(stream, count)
        if self.login is not None:
            if 2 not in methods:
                await stream.send(b"\x05\xff")
                return
            await in_pieces(stream, b"\x05\x02")
            user = await exactly(stream, (await exactly(stream, 2))[1])
            password = await exactly(stream, (await exactly(stream, 1))[0])
            is_right = (user.decode(), password.decode()) == self.login
            await in_pieces(stream, b"\x01\x00" if is_right else b"\x01\x01")
            if not is_right:
                return
        else:
            await in_pieces(stream, b"\x05\x00")
        kind = (await exactly(stream, 4))[3]
        assert kind == 3, "a name is looked up by the proxy"
        host = await exactly(stream, (await exactly(stream, 1))[0])
        port = int.from_bytes(await exactly(stream, 2))
        place = f"{host.decode()}:{port}"
        self.asked.append(place.encode())
        if place not in self.ports:
            await in_pieces(stream, b"\x05\x04\x00\x01" + bytes(6))
            return
        await in_pieces(stream, b"\x05\x00\x00\x03\x01x\x00\x50")
        await self._lead(stream, place, b"")

    async def _lead(self, stream: ByteStream, place: str, first: bytes) -> None:
        async with await anyio.connect_tcp("127.0.0.1", self.ports[place]) as server:
            if first:
                await server.send(first)
            async with anyio.create_task_group() as task_group:
                task_group.start_soon(pump, server, stream)
                await pump(stream, server)


async def pump(source: ByteStream, sink: ByteStream) -> None:
    try:
        async for chunk in source:
            await sink.send(chunk)
        await sink.send_eof()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, NotImplementedError):  # TLS has no half-closing
        return


async def exactly(stream: ByteStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        try:
            data += await stream.receive(count - len(data))
        except EndOfStream:
            raise anyio.BrokenResourceError from None
    return data


async def in_pieces(stream: ByteStream, data: bytes) -> None:
    """Send bytes one by one, as a network may deliver them."""
    for byte in data:
        await stream.send(bytes([byte]))
        await anyio.lowlevel.checkpoint()
