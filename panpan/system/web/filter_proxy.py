"""A proxy on the loopback for a program that opens connections itself: the browser.

The rule: it leads to the public web, to the hosts that its network opens, and nowhere else. Whatever a page loads, and
wherever a redirect or a script sends the browser, comes through here, is checked like every address that panpan asks
for, and the checked address is dialled.
"""

import socket
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork
from panpan.system.web.proxy_connection import (
    MAX_REFUSED_CONNECTIONS,
    ConnectionLimit,
    NotReachableError,
    ProxyConnection,
    ProxyTimeouts,
    Route,
    answer_connections,
)
from panpan.system.web.url_guard import Authority, PrivateHosts, plain_url, public_addresses

MAX_CONNECTIONS = 256
"""Most connections at the same time; a browser opens up to six for each host of a page."""
MAX_LOOKUPS = 4
"""Most look-ups at the same time. The event loop has few threads for them."""
MAX_REFUSED = 20
MAX_HOSTS = 1000
MAX_SAID = 1000
IDLE_S = 300.0
"""Seconds after which a connection over which nothing comes is closed."""


class FilterProxy(AsyncContextManagerMixin):
    """Listens while it is entered."""

    port: int
    """Port on 127.0.0.1."""

    def __init__(self, network: WebNetwork, *, timeouts: ProxyTimeouts | None = None) -> None:
        self._network = network
        self._timeouts = timeouts or ProxyTimeouts(idle_s=IDLE_S)
        self._refused: dict[str, None] = {}
        self._hosts: dict[str, None] = {}
        self._said: set[str] = set()
        self._limit = ConnectionLimit(MAX_CONNECTIONS)
        self._lookups = anyio.Semaphore(MAX_LOOKUPS)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        listener = await SocketListener.from_socket(socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS))
        self.port = listener.extra(SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as task_group:
            most = MAX_CONNECTIONS + MAX_REFUSED_CONNECTIONS
            task_group.start_soon(answer_connections, listener, self._answer, most)
            yield self
            task_group.cancel_scope.cancel()

    @property
    def private(self) -> PrivateHosts:
        """The hosts that it leads to although they are not public."""
        return self._network.private

    @property
    def refused(self) -> Sequence[str]:
        """Reasons of the refusals until now; each once, the first `MAX_REFUSED`."""
        return tuple(self._refused)

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts that were asked for until now, refused ones too; each once, the first `MAX_HOSTS`."""
        return tuple(self._hosts)

    async def _answer(self, stream: SocketStream) -> None:
        connection = ProxyConnection(
            stream,
            find_route=self._route,
            dial=self._network.dial,
            note=self._note,
            timeouts=self._timeouts,
            say=self._say,
        )
        await self._limit.serve(connection, stream, self._note)

    def has_said(self, text: str) -> bool:
        """Return True if the proxy itself said this in place of a server, of which pages can know the words."""
        return text in self._said

    def _say(self, text: str) -> None:
        if len(self._said) < MAX_SAID:
            self._said.add(text)

    def _note(self, refusal: ToolError) -> None:
        if len(self._refused) < MAX_REFUSED:
            self._refused[str(refusal)] = None

    async def _route(self, asked: Authority, default_port: int) -> Route:
        """Return where to dial; a tunnel is checked like an address of https, whatever goes through it."""
        if len(self._hosts) < MAX_HOSTS:
            self._hosts[asked.host] = None
        port = default_port if asked.port is None else asked.port
        private = self._network.private
        try:
            plain = plain_url(f"http://{Authority(asked.host, asked.address, port)}/", private)
        except ToolError as exc:
            raise NotReachableError(str(exc)) from exc
        if (proxy := await self._network.proxy_for(plain)) is not None:
            return Route(asked.host, port, (), proxy)
        found = [asked.host] if asked.address is not None else await self._looked_up(asked.host, port)
        if not found:
            raise ToolError(f"{asked.host} has no address; check the name and the network")
        if private.opens(asked.host, asked.address):
            return Route(asked.host, port, tuple(found))
        try:
            return Route(asked.host, port, public_addresses(asked.host, found))
        except ToolError as exc:
            raise NotReachableError(str(exc)) from exc

    async def _looked_up(self, host: str, port: int) -> Sequence[str]:
        async with self._lookups:
            return await self._network.resolve(host, port)


_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"
_WORD_DIGITS = 8
_LOOPBACK = (b"\x7f\0\0\1", bytes(10) + b"\xff\xff\x7f\0\0\1")
_ANY = (bytes(4), bytes(16))


def listening_user(port: int) -> int | None:
    """Return the number of the user whose process listens on 127.0.0.1 at `port`."""
    users = {address: user for address, its_port, user in _listeners() if its_port == port}
    # A listener on the address itself gets its traffic before one on all addresses.
    return next((users[address] for address in (*_LOOPBACK, *_ANY) if address in users), None)


def _listeners() -> Iterator[tuple[bytes, int, int]]:
    """Yield address, port and user of each socket that listens."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENING:
                    address, _, port = words[1].partition(":")
                    yield _address(address), int(port, 16), int(words[7])


def _address(digits: str) -> bytes:
    """Return an address as the network writes it; the kernel shows words of four bytes as this machine keeps them."""
    words = (int(digits[start : start + _WORD_DIGITS], 16) for start in range(0, len(digits), _WORD_DIGITS))
    return b"".join(word.to_bytes(4, sys.byteorder) for word in words)
