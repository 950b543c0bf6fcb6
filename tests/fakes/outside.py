"""A fake network: names with public addresses, which are served on the loopback.

No packet leaves this machine: an address without a server refuses the connection.
"""

import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import EndOfStream
from anyio.abc import ByteStream, SocketStream
from anyio.streams.tls import TLSStream

from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PlainUrl
from tests.needed_programs import need

PUBLIC = "93.184.216.34"
OTHER = "8.8.8.8"


def anywhere(_: PlainUrl) -> None:
    """Allow a page every address."""


@dataclass
class Network:
    """Addresses of names, and the local servers for addresses."""

    names: dict[str, Sequence[str]] = field(default_factory=lambda: {"example.org": [PUBLIC]})
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """Port on 127.0.0.1 of the server for an address and port."""
    trusted: Path | None = None
    """Certificate that is trusted."""
    asked: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise ToolError(f"{host} has no address")
        return self.names[host]

    async def dial(self, address: str, port: int) -> ByteStream:
        self.dialled.append((address, port))
        if (address, port) not in self.ports:
            raise ConnectionRefusedError
        return await anyio.connect_tcp("127.0.0.1", self.ports[address, port])

    @property
    def web(self) -> WebNetwork:
        return WebNetwork(self.resolve, self.dial, self.certificates)

    def certificates(self) -> ssl.SSLContext:
        assert self.trusted is not None, "the test trusts no certificate"
        return ssl.create_default_context(cafile=self.trusted)


Serve = Callable[[ByteStream], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve, *, certificate: Path | None = None) -> AsyncGenerator[int, None]:
    """Serve each connection to a port of 127.0.0.1, over TLS if there is a certificate, and yield the port."""

    async def answer(plain: SocketStream) -> None:
        async with plain:
            try:
                await serve(plain if certificate is None else await _secured(plain, certificate))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, EndOfStream, ssl.SSLError):
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    async with listener, anyio.create_task_group() as task_group:
        task_group.start_soon(listener.serve, answer)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        task_group.cancel_scope.cancel()


@dataclass
class Server:
    """A server that keeps the bytes that it receives, and answers after a request's head and `body_bytes` more."""

    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    until: bytes = b"\r\n\r\n"
    received: list[bytes] = field(default_factory=list)
    """Received bytes, by connection."""

    async def serve(self, stream: ByteStream) -> None:
        number = len(self.received)
        self.received.append(b"")
        while self.until not in self.received[number]:
            self.received[number] += await stream.receive()
        await stream.send(self.answer)
        if isinstance(stream, TLSStream):
            return
        await stream.send_eof()
        async for chunk in stream:
            self.received[number] += chunk


async def _secured(plain: SocketStream, certificate: Path) -> TLSStream:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return await TLSStream.wrap(plain, server_side=True, ssl_context=context, standard_compatible=False)


def made_certificate(folder: Path, *names: str) -> Path:
    """Make a self-signed certificate and its key for hosts, in one file."""
    need("openssl")
    place, signed = folder / "certificate.pem", folder / "signed.pem"
    alternatives = ",".join(f"DNS:{name}" for name in names)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={alternatives}", "-keyout", place, "-out", signed],
        check=True, capture_output=True,
    )  # fmt: skip
    place.write_bytes(place.read_bytes() + signed.read_bytes())
    return place


async def said_to(port: int, request: bytes) -> bytes:
    """Send bytes to a port of 127.0.0.1, and return all bytes until the end of the answer."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        try:
            await stream.send(request)
            return await rest_of(stream)
        except anyio.BrokenResourceError:
            return b""


async def rest_of(stream: ByteStream) -> bytes:
    """Return all bytes until the end, or until the other side resets the connection."""
    received = bytearray()
    try:
        async for chunk in stream:
            received += chunk
    except anyio.BrokenResourceError:
        pass
    return bytes(received)


def head_of(request: bytes) -> tuple[bytes, Mapping[bytes, bytes]]:
    """Return the first line and the headers, none of which may occur twice."""
    line, *lines = request.partition(b"\r\n\r\n")[0].split(b"\r\n")
    pairs = [header.split(b": ", 1) for header in lines]
    headers = {name.lower(): value for name, value in pairs}
    assert len(headers) == len(pairs)
    return line, headers
