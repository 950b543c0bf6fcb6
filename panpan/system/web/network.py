"""Connections to the outside: the resolver, the dialling, and the trusted certificates.

The rule: this dials what it is given. Who asks has had the address from the URL guard, or the host where the user's own
proxy looks up the address.

The rule: what comes back has been checked by nobody. It goes to the URL guard before anything is dialled.
"""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, to_thread
from anyio.abc import ByteStream

from panpan.errors import ToolError
from panpan.system.web.url_guard import (
    NO_PRIVATE_HOSTS,
    Origin,
    PlainUrl,
    PrivateHosts,
    Resolve,
    addresses_to_dial,
    is_public,
    plain_authority,
    plain_url,
    read_url,
)
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from ssl import SSLContext

    from panpan.system.web.exchange import GuardedResponse
    from panpan.system.web.upstream_proxy import UpstreamProxy


TIMEOUT_S = 15.0


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return all addresses of `host`, a name of ASCII letters, best first.

    Raises:
        ToolError: It has none, or none was told in time.
    """
    try:
        with anyio.fail_after(TIMEOUT_S):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise ToolError(f"no name server answered for {host} within {TIMEOUT_S:g} s") from None
    except (OSError, UnicodeError):  # UnicodeError: too long for a name server
        raise ToolError(f"{host} has no address; check the name and the network") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


Dial: TypeAlias = Callable[[str, int], Awaitable[ByteStream]]
"""Connects to an IP address and a port; raises OSError."""


async def connect(address: str, port: int) -> ByteStream:
    """Connect to an IP address; raise `OSError` if nothing takes the connection."""
    return await anyio.connect_tcp(address, port)


def usual_certificates() -> "SSLContext":
    """Return what is demanded of a server's certificate: what the clients of the models demand."""
    import httpx2  # takes 100 ms, and most sessions have imported it by then

    return httpx2.create_ssl_context()


@dataclass(frozen=True, slots=True)
class WebNetwork:
    """The outside, as the clients of it see it; tests give their own."""

    resolve: Resolve = resolve
    dial: Dial = connect
    certificates: Callable[[], "SSLContext"] = usual_certificates
    """Says which certificates count; called in a thread."""
    private: PrivateHosts = NO_PRIVATE_HOSTS
    """Hosts that the user has opened although they are not public. They are reached without the proxy."""
    proxy: "UpstreamProxy | None" = None
    """The user's own proxy; None if hosts are dialled directly."""

    async def proxy_for(self, plain: PlainUrl, *, is_own: bool = False) -> "UpstreamProxy | None":
        """Return the proxy that leads to an address; None if the host is dialled.

        What the user's own settings name (`is_own`) is dialled if it is in this machine or its network.
        """
        if self.proxy is None or self.private.opens(plain.host, plain.address):
            return None
        if not is_own:
            return self.proxy
        try:
            addresses = await addresses_to_dial(plain, self.resolve, own=(plain.origin,))
        except ToolError:  # only the proxy knows the name
            return self.proxy
        return self.proxy if all(is_public(ip_address(address)) for address in addresses) else None

    def for_page(self, plain: PlainUrl) -> Self:
        """Return the network that a page may load from: the user's own hosts only if the page is on one of them."""
        if self.private.opens(plain.host, plain.address):
            return self
        private, proxy = self.private, self.proxy

        def require_open(host: str) -> None:
            if private.opens(host, plain_authority(f"[{host}]" if ":" in host else host).address):
                raise ToolError(
                    f"{host} is one of your private hosts, which other sites may not load from; ask for it alone"
                )
            if proxy is not None:
                proxy.require_open(host)

        proxy_of_page = None if proxy is None else replace(proxy, require_open=require_open)
        return replace(self, private=NO_PRIVATE_HOSTS, proxy=proxy_of_page)

    def as_set_up(self, private_hosts: Sequence[str], proxy: str | None) -> Self:
        """Return this network with what the user's settings open, and their way out.

        Raises:
            ToolError: One of them cannot be read.
        """
        if proxy is None and not private_hosts:
            return self
        from panpan.system.web.upstream_proxy import UpstreamProxy  # few have one

        found = None if proxy is None else UpstreamProxy.parse(proxy, self.certificates)
        return replace(self, private=PrivateHosts.parse(private_hosts), proxy=found)


MAX_DIALLED = 4
DIAL_S = 5.0
"""Seconds for one of a host's addresses to answer, where it has others."""
_CLOSE_S = 2.0


class Connector:
    """Opens connections to what the URL guard returned; no name server is asked again in between."""

    def __init__(self, network: WebNetwork) -> None:
        self._network = network
        self._certificates: SSLContext | None = None

    async def connect(self, plain: PlainUrl, *, is_own: bool = False) -> "tuple[ByteStream, UpstreamProxy | None]":
        """Return a connection to the host of an address, with TLS where its scheme says so.

        Where a proxy forwards requests of plain http, the connection leads to that proxy, which is returned, too. Only
        what the user's own settings name (`is_own`) may lead anywhere.

        Raises:
            ToolError: It may not be reached, or cannot be.
        """
        proxy = await self._network.proxy_for(plain, is_own=is_own)
        own = (plain.origin,) if is_own else ()
        addresses = () if proxy else await addresses_to_dial(plain, self._network.resolve, own=own)
        context = await self._ssl_context() if plain.scheme == "https" else None
        if proxy is None:
            stream = await self._dialled(plain, addresses)
        else:
            is_forwarded = proxy.forwards(plain.scheme)
            stream = await proxy.connect(plain.host, plain.port, is_tunnel=not is_forwarded)
            if is_forwarded:
                return stream, proxy
        return stream if context is None else await _secured(stream, plain.host, context), None

    async def _dialled(self, plain: PlainUrl, addresses: Sequence[str]) -> ByteStream:
        for address in addresses[:MAX_DIALLED]:
            with suppress(OSError), anyio.move_on_after(DIAL_S if len(addresses) > 1 else None):
                return await self._network.dial(address, plain.port)
        raise ToolError(f"{plain.host} does not answer at port {plain.port}")

    async def _ssl_context(self) -> "SSLContext":
        """Return what is demanded of certificates; to find it out takes long the first time."""
        if self._certificates is None:
            try:
                self._certificates = await to_thread.run_sync(self._network.certificates)
            except OSError as exc:  # also ssl errors
                raise ToolError(
                    f"there are no certificates to trust ({exc.strerror or exc}); look at SSL_CERT_FILE"
                ) from exc
        return self._certificates


async def _secured(stream: ByteStream, host: str, context: "SSLContext") -> ByteStream:
    from ssl import SSLError

    from anyio.streams.tls import TLSStream

    try:
        # Many servers close without TLS's close message; the length of the body tells whether it is complete.
        return await TLSStream.wrap(stream, hostname=host, ssl_context=context, standard_compatible=False)
    except SSLError as exc:
        await close(stream)
        why = getattr(exc, "verify_message", "") or exc.reason or "it speaks no TLS"
        raise ToolError(f"there is no safe connection to {host}: {why}") from exc
    except (BrokenResourceError, ClosedResourceError, EndOfStream, OSError) as exc:
        await close(stream)
        raise ToolError(f"there is no safe connection to {host}: it ended the connection") from exc
    except BaseException:
        await close(stream)
        raise


async def close(stream: ByteStream) -> None:
    """Close a connection, whatever else is going on."""
    with (
        suppress(BrokenResourceError, ClosedResourceError, OSError),
        anyio.move_on_after(_CLOSE_S, shield=True),
    ):
        await stream.aclose()


Allow: TypeAlias = Callable[[PlainUrl], Awaitable[None] | None]
"""Raises ToolError where an address, or one that a redirect names, is not to be asked for."""

MAX_CONNECTIONS = 16
"""Most connections of one client at the same time; further ones wait."""
ACCEPTED = "gzip, deflate"
"""Codings that are asked for where the caller asks for nothing else."""
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"})
"""Headers that nobody but this client writes."""


class GuardedClient:
    """Asks for addresses of the public web. Leave it when nothing more is to be asked for.

    Args:
        network: The way to the outside. The private hosts that it opens may be asked for; no redirect of others
            leads there.
        user_agent: The name of the client for servers.
        own: Addresses that the user's own settings name, which may lead into their network; each opens its scheme, host
            and port, and nothing else, and to no redirect of others.

    Raises:
        ToolError: One of `own` cannot be read.
    """

    def __init__(self, network: WebNetwork, *, user_agent: str, own: Collection[str] = ()) -> None:
        self._user_agent = user_agent
        self._own: frozenset[Origin] = frozenset(read_url(url).origin for url in own)
        self._network = network
        self._connector = Connector(network)
        self._free = anyio.Semaphore(MAX_CONNECTIONS)
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ask for nothing more; what is being read may be read to its end."""
        self._is_closed = True

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout_s: float = 30.0,
        max_redirects: int = 10,
        allow: Allow | None = None,
    ) -> AsyncGenerator["GuardedResponse", None]:
        """Ask for `url`, follow redirects, and give the answer, whose body is still to come.

        Args:
            method: GET, HEAD, POST …
            url: The address as it was written.
            headers: What to send beside what every request has. With an `accept-encoding` of its own, such as
                `identity`, or a `range`, the body is decoded only where that was asked for.
            content: What to send.
            timeout_s: Seconds for a server to be reached and to answer with a head, and between two pieces of a body.
            max_redirects: Redirects that are followed.
            allow: Asked before each address, redirects included.

        Raises:
            ToolError: It may not be asked for, or there is no answer; says why. Reading the body raises it, too.
        """
        from panpan.system.web.exchange import (
            GuardedResponse,
            WebHeaders,
            WebRequest,
            follow_redirect,
            location_of,
            perform_request,  # its imports take 10 ms, and few sessions need them
        )

        if self._is_closed:
            raise ToolError("the session is about to end; nothing more is asked for")
        plain, is_own = self._plain(url, may_be_own=True)
        request = WebRequest(method.upper(), plain, self._completed(headers or {}), content, is_own)
        history: list[str] = []
        async with self._free:
            while True:
                await _ask(allow, request.plain)
                async with perform_request(request, self._connector, timeout_s) as (side, head):
                    status, answered = head.status_code, WebHeaders(head.headers)
                    location = location_of(request, status, answered)
                    if location is None:
                        yield GuardedResponse(request, status, answered, tuple(history), side, timeout_s)
                        return
                history.append(request.plain.url)
                if len(history) > max_redirects:
                    raise ToolError(f"{request.plain.host} redirects on after {max_redirects} redirects")
                target, is_own = self._plain(location, may_be_own=request.is_own)
                request = follow_redirect(request, status, target, is_own=is_own)
                if request.method == "GET" and request.plain.url in history:  # without cookies it would go on like this
                    raise ToolError(f"{request.plain.host} redirects in a circle")

    def plain(self, url: str) -> PlainUrl:
        """Return the parts of an address that may be asked for, as far as that can be told without a name server.

        Raises:
            ToolError: It may not be asked for, or is none.
        """
        return self._plain(url, may_be_own=True)[0]

    def _plain(self, url: str, *, may_be_own: bool) -> tuple[PlainUrl, bool]:
        """Return an address, and True if it may lead into the user's network; no stranger's redirect does."""
        plain = read_url(url)
        if may_be_own and plain.origin in self._own:
            return plain, True
        private = self._network.private if may_be_own else NO_PRIVATE_HOSTS
        return plain_url(url, private), private.opens(plain.host, plain.address)

    def _completed(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        given = {name.lower(): value for name, value in headers.items()}
        if ours := _OURS & given.keys():
            raise ValueError(f"not for callers to write: {', '.join(sorted(ours))}")
        coding = "identity" if "range" in given else ACCEPTED
        return {"user-agent": self._user_agent, "accept": "*/*", "accept-encoding": coding} | given


async def _ask(allow: Allow | None, plain: PlainUrl) -> None:
    answer = None if allow is None else allow(plain)
    if answer is not None:
        await answer
