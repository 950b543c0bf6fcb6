"""Network of commands that may reach single hosts: one proxy for a session, an entrance to it for each command.

The rule: a command reaches the granted domains and nothing else. Its box has no network but its own loopback; the proxy
lives outside and answers there, through a socket that the box hands out. So each box has an entrance that no other
program can use, and nothing in the box forwards anything or could be talked into it. Where boxes share the loopback of
the machine, each may reach one port of it, at which the proxy listens for this box.

A host is granted as it is written or not at all, and its addresses are public or granted themselves. So a name server
can lead nobody into this machine or its network. Hosts of the user's own setup may be in their network, but their names
lead neither to this machine nor to what only it can reach.
"""

import os
import socket
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import SocketListener, SocketStream, TaskGroup

from panpan.errors import ConfigError, ToolError
from panpan.system.sandbox.profile import PROXY_PORT, ProxyEndpoint, inheritable_copy
from panpan.system.web.network import Dial, connect, resolve
from panpan.system.web.proxy_connection import (
    MAX_REFUSED_CONNECTIONS,
    ConnectionLimit,
    NotReachableError,
    ProxyConnection,
    ProxyTimeouts,
    Route,
    answer_connections,
)
from panpan.system.web.url_guard import Authority, Resolve, plain_authority, public_addresses
from panpan.types.dataclass import dataclass
from panpan.types.permission import PACKAGE_INDEXES, network_flag

WEB_PORTS = (80, 443)
"""Ports of a grant that names none."""

SETTING = "sandbox.domains"

_MOST_NAMED = 3
"""Most addresses of a name that a refusal tells."""

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
"""Addresses of localhost, whatever a name server says (RFC 6761, section 6.3)."""


class NotGrantedError(NotReachableError):
    """A host may not be reached; says why, and what in the settings would grant it where something would.

    Args:
        text: The sentence.
        grant: The host as the setting names it; empty if none of it would help.
    """

    def __init__(self, text: str, grant: str = "") -> None:
        super().__init__(text)
        self.grant = grant


@dataclass(frozen=True, slots=True)
class DomainGrant:
    """One host that may be reached, or all below a domain. Made by `parse`."""

    host: str
    address: IPv4Address | IPv6Address | None
    port: int | None
    """Port; None for `WEB_PORTS`."""
    is_for_subdomains: bool
    """True for all hosts below `host`, and then not for `host` itself."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the grant that `text` writes: `pypi.org`, `*.pythonhosted.org`, `example.org:8080`, `[::1]:8000`.

        Raises:
            ToolError: It writes none; says why.
        """
        if not text.isprintable() or any(char in text for char in " /\\?#"):
            raise ToolError("write the host alone, such as pypi.org or *.pythonhosted.org")
        name = text.removeprefix("*.")
        authority = plain_authority(name)
        is_for_subdomains = name != text
        if is_for_subdomains and (authority.address is not None or "." not in authority.host):
            raise ToolError("`*.` goes before a domain of at least two parts, such as *.pythonhosted.org")
        return cls(authority.host, authority.address, authority.port, is_for_subdomains)

    def covers(self, asked: Authority, port: int) -> bool:
        """True if the grant is for this host at this port."""
        if not self._is_for_port(port):
            return False
        if self.is_for_subdomains:
            return asked.address is None and asked.host.endswith(f".{self.host}")
        return (asked.host, asked.address) == (self.host, self.address)

    def addresses(self, port: int) -> Sequence[IPv4Address | IPv6Address]:
        """Return the addresses that it lets be dialled at this port although they are not public."""
        if not self._is_for_port(port) or self.is_for_subdomains:
            return ()
        if self.address is not None:
            return (self.address,)
        return _LOOPBACK if self.host == "localhost" else ()

    def _is_for_port(self, port: int) -> bool:
        return port in WEB_PORTS if self.port is None else port == self.port


class DomainGrants:
    """All hosts that are granted; `own_hosts` may lead into the user's own network.

    Raises:
        ToolError: One cannot be read; says which and why.
    """

    def __init__(self, domains: Sequence[str], own_hosts: Sequence[str] = ()) -> None:
        self.domains = tuple(dict.fromkeys((*domains, *own_hosts)))
        self._grants = [_parsed(text) for text in self.domains]
        self._own = [_parsed(text) for text in own_hosts]
        self.hosts = frozenset(grant.host for grant in self._grants if not grant.is_for_subdomains)
        self._own_hosts = tuple(own_hosts)

    def extended(self, domains: Sequence[str], own_hosts: Sequence[str]) -> "DomainGrants":
        """Return these grants with further ones; raise `ToolError` as when they are made."""
        if not (domains or own_hosts):
            return self
        return DomainGrants((*self.domains, *domains), (*self._own_hosts, *own_hosts))

    def covers(self, asked: Authority, port: int) -> bool:
        """True if this host may be asked for at this port; its addresses are another matter."""
        return any(grant.covers(asked, port) for grant in self._grants)

    async def route(self, asked: Authority, default_port: int, resolve: Resolve) -> Route:
        """Return where to dial for `asked`; `resolve` is not called for what is not granted.

        Raises:
            NotGrantedError: It is not granted, or leads to where nothing is.
            ToolError: It has no address.
        """
        port = default_port if asked.port is None else asked.port
        grant = _written(asked.host, asked.address, port)
        if not self.covers(asked, port):
            how = f'"{grant}" in {SETTING} would grant it, or {network_flag([grant])}'
            raise NotGrantedError(f"{grant} is not among the granted domains; {how}", grant)
        also = [address for grant in self._grants for address in grant.addresses(port)]
        is_own = any(grant.covers(asked, port) for grant in self._own)
        if asked.address is not None:
            found: Sequence[str] = [str(asked.address)]
        elif asked.host == "localhost":
            found = [str(address) for address in _LOOPBACK]
        else:
            found = await resolve(asked.host, port)
            also += _of_network(found) if is_own else ()
        if not found:
            raise ToolError(f"{asked.host} has no address; check the name")
        try:
            return Route(asked.host, port, public_addresses(asked.host, found, also=also))
        except ToolError as exc:
            raise NotGrantedError(_not_public(grant, found[:_MOST_NAMED], port)) from exc


def _not_public(grant: str, found: Sequence[str], port: int) -> str:
    """Return why a granted host is not dialled, and the setting for it; none is named for this machine's addresses."""
    addresses = [_written(str(address), address, port) for text in found if (address := _address(text)) is not None]
    where = "is" if addresses == [grant] else f"leads to {', '.join(addresses) or 'what is'},"
    is_elsewhere = len(list(_of_network(found))) == len(found)
    flag = f"; add {network_flag(addresses)}" if is_elsewhere and addresses else ""
    return f"{grant} {where} not a public address; {SETTING} has to name that address itself{flag}"


def _of_network(found: Sequence[str]) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the addresses that another machine may have: not this one's own, nor those of its link alone."""
    for text in found:
        if (address := _address(text)) is None:
            continue
        is_here = address.is_loopback or address.is_link_local or address.is_unspecified
        is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
        if not (is_here or is_mapped or address.is_multicast or address.is_reserved):
            yield address


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _written(host: str, address: IPv4Address | IPv6Address | None, port: int) -> str:
    return str(Authority(host, address, None if port in WEB_PORTS else port))


def _parsed(text: str) -> DomainGrant:
    try:
        return DomainGrant.parse(text)
    except ToolError as exc:
        raise ToolError(f"{SETTING} holds {text[:80]!r}, which is not a domain: {exc}") from exc


MAX_CONNECTIONS = 128
"""Most connections of one session at the same time; package managers open some dozens."""
MAX_COMMANDS = 64
"""Most commands of one session at the same time, those in the background included."""
MAX_LOOKUPS = 4
"""Most look-ups at the same time. The event loop has few threads for them, and the name server of a granted domain may
let them wait."""
MAX_REFUSED = 20


class CommandProxy:
    """The entrance of one command. Made by `DomainAccess.open`; to be closed when the command ended.

    What the command leaves running in the background keeps its network until it ends itself, or the session does.
    """

    endpoint: ProxyEndpoint

    def __init__(self, grants: DomainGrants, *, shares_loopback: bool = False) -> None:
        self.grants = grants
        self._refused: dict[str, str] = {}
        with ExitStack() as kept:
            self._given = kept.enter_context(ExitStack())
            self._alive, alive_fd = _pair(kept, self._given)
            if shares_loopback:
                self._entrance = kept.enter_context(socket.create_server(("127.0.0.1", 0)))
                self.endpoint = ProxyEndpoint(None, alive_fd, grants.domains, self._entrance.getsockname()[1])
            else:
                self._entrance, handover_fd = _pair(kept, self._given)
                self.endpoint = ProxyEndpoint(handover_fd, alive_fd, grants.domains)
            self._kept = kept.pop_all()

    def environment(self) -> dict[str, str]:
        """Return the variables that lead programs to the proxy, to be set over those of the command.

        What a command serves itself, on the loopback of its box, it reaches without the proxy.
        """
        url = f"http://127.0.0.1:{self.endpoint.port}"
        own = ",".join(name for name in ("localhost", "127.0.0.1", "::1") if name not in self.grants.hosts)
        names = ("http_proxy", "https_proxy", "all_proxy")
        set_for_both = {name: url for name in names} | {"no_proxy": own}
        # Node's own fetch uses these only if told to.
        return (
            set_for_both | {name.upper(): value for name, value in set_for_both.items()} | {"NODE_USE_ENV_PROXY": "1"}
        )

    @property
    def refused(self) -> Sequence[str]:
        """Reasons why it was refused what it asked for until now; each once, the first `MAX_REFUSED`."""
        return tuple(self._refused)

    @property
    def missing_hosts(self) -> Sequence[str]:
        """Hosts that it was refused, as the setting names them, as far as that would grant them and nothing else."""
        return tuple(dict.fromkeys(grant for grant in self._refused.values() if grant not in ("", PACKAGE_INDEXES)))

    def note(self, refusal: ToolError) -> None:
        if len(self._refused) < MAX_REFUSED:
            self._refused[str(refusal)] = refusal.grant if isinstance(refusal, NotGrantedError) else ""

    def close(self) -> None:
        """Give back what a box inherits; none can be started with it any more."""
        self._given.close()

    async def listener(self) -> SocketListener | None:
        """Wait for the socket that the box listens on, and return it; None if none comes."""
        if self.endpoint.handover_fd is None:
            return await SocketListener.from_socket(self._entrance)
        with self._entrance:
            await anyio.wait_readable(self._entrance)
            with suppress(OSError):
                _, received, *_ = socket.recv_fds(self._entrance, 1, 1)
                sockets = [socket.socket(fileno=fd) for fd in received]
                if sockets and _is_entrance(sockets[0]):
                    return await SocketListener.from_socket(sockets[0])
                for one in sockets:
                    one.close()
        return None

    async def wait_ended(self) -> None:
        """Return when nothing runs in the box any more."""
        await anyio.wait_readable(self._alive)  # it becomes readable at its end; nobody writes to it

    def give_back(self) -> None:
        """Close all that is left, when the box is gone."""
        self._kept.close()


class DomainAccess(AsyncContextManagerMixin):
    """The proxy of one session. Enter it around all that runs commands; leaving it ends every connection.

    Domains are written as in `sandbox.domains`: `pypi.org`; `*.pythonhosted.org` for all below it; `example.org:8080`
    for another port than 80 and 443; `127.0.0.1:8000`, `localhost:8000` and other addresses, which are never reached
    unless they are named. `own_hosts` may lead into the user's own network.

    Raises:
        ConfigError: A domain is none; says which and why.
    """

    _task_group: TaskGroup

    def __init__(
        self,
        domains: Sequence[str],
        *,
        own_hosts: Sequence[str] = (),
        resolve: Resolve = resolve,
        dial: Dial = connect,
        timeouts: ProxyTimeouts | None = None,
    ) -> None:
        try:
            self._grants = DomainGrants(domains, own_hosts)
        except ToolError as exc:
            raise ConfigError(str(exc)) from exc
        self._resolve = resolve
        self._dial = dial
        self._timeouts = timeouts or ProxyTimeouts()
        self._open: set[CommandProxy] = set()
        self._limit = ConnectionLimit(MAX_CONNECTIONS)
        self._lookups = anyio.Semaphore(MAX_LOOKUPS)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        try:
            async with anyio.create_task_group() as self._task_group:
                yield self
                self._task_group.cancel_scope.cancel()
        finally:
            for command in self._open:  # those whose task had not started yet
                command.give_back()

    @property
    def commands(self) -> int:
        """Number of commands with an entrance, those in the background included."""
        return len(self._open)

    def grant(self, domains: Sequence[str], own_hosts: Sequence[str] = ()) -> None:
        """Let all later commands reach further domains, too.

        Raises:
            ToolError: A domain is none.
        """
        self._grants = self._grants.extended(domains, own_hosts)

    def open(
        self, domains: Sequence[str] = (), own_hosts: Sequence[str] = (), *, shares_loopback: bool = False
    ) -> CommandProxy:
        """Return an entrance for one command, which is about to start.

        Args:
            domains: Further hosts that it alone may reach.
            own_hosts: Hosts that may lead into the user's own network.
            shares_loopback: True if the sandbox in which it runs does.

        Raises:
            ToolError: A domain is none, too many commands have one, or too many files are open.
        """
        if self.commands >= MAX_COMMANDS:
            raise ToolError(f"{MAX_COMMANDS} commands use the network at the same time; end some of them first")
        try:
            command = CommandProxy(self._grants.extended(domains, own_hosts), shares_loopback=shares_loopback)
        except OSError as exc:
            raise ToolError(f"cannot give the command a way to the network: {exc.strerror}") from exc
        self._open.add(command)
        self._task_group.start_soon(self._serve, command)
        return command

    async def _serve(self, command: CommandProxy) -> None:
        try:
            listener = await command.listener()
            if listener is None:
                return
            async with listener, anyio.create_task_group() as task_group:
                most = MAX_CONNECTIONS + MAX_REFUSED_CONNECTIONS
                task_group.start_soon(answer_connections, listener, partial(self._answer, command), most)
                await command.wait_ended()
                task_group.cancel_scope.cancel()
        finally:
            self._open.discard(command)
            command.give_back()

    async def _answer(self, command: CommandProxy, stream: SocketStream) -> None:
        async def find_route(asked: Authority, default_port: int) -> Route:
            return await command.grants.route(asked, default_port, self._looked_up)

        connection = ProxyConnection(
            stream, find_route=find_route, dial=self._dial, note=command.note, timeouts=self._timeouts
        )
        await self._limit.serve(connection, stream, command.note)

    async def _looked_up(self, host: str, port: int) -> Sequence[str]:
        async with self._lookups:
            return await self._resolve(host, port)


def _pair(kept: ExitStack, given: ExitStack) -> tuple[socket.socket, int]:
    """Return two connected ends: one that is kept here, and the descriptor of one that a box inherits."""
    ours, theirs = socket.socketpair()
    kept.enter_context(ours)
    ours.setblocking(False)
    with theirs:
        fd = inheritable_copy(theirs.fileno())
        given.callback(os.close, fd)
    return ours, fd


def _is_entrance(received: socket.socket) -> bool:
    """True if it is what a box hands out: a socket that listens at the proxy's port on the loopback."""
    is_listening = received.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    is_tcp = received.family == socket.AF_INET and received.type == socket.SOCK_STREAM
    return is_tcp and is_listening and received.getsockname() == ("127.0.0.1", PROXY_PORT)
