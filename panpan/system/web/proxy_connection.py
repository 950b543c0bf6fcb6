"""One connection to the proxy: a tunnel to a host, or one request to it and the answer.

The rule: what is not a tunnel is not forwarded as it came. It is read and written again, one request to a connection,
so that no server reads more or other requests in it than the proxy did.

The rule: a request names its host once. One that two programs could read in two ways is refused, not mended.
"""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import anyio
import h11
from anyio import BrokenResourceError, CancelScope
from anyio.abc import ByteStream, SocketListener, SocketStream

from panpan.errors import ToolError
from panpan.system.web.exchange import GONE, HttpSide
from panpan.system.web.network import Dial
from panpan.system.web.url_guard import Authority, plain_authority
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.system.web.upstream_proxy import UpstreamProxy


HTTP_PORT = 80

_TARGET = compile_late(rb"http://(?P<authority>[^/?#]*)(?P<rest>[^#]*)", re.IGNORECASE)
_VERSIONS = (b"1.0", b"1.1")

_FOR_PROXY = frozenset({
    b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate", b"te", b"upgrade",
})  # fmt: skip
"""Headers that are for the proxy and not for the server (RFC 9110, section 7.6.1)."""
_FRAMING = (b"content-length", b"transfer-encoding")

RawHeaders = list[tuple[bytes, bytes]]


class BadRequestError(ToolError):
    """The proxy does not take such a request, whatever its host; says why."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """Request of a client."""

    authority: Authority
    forwarded: h11.Request | None
    """Request to send to the server; None if the client wants a tunnel to it."""


def parse_proxy_request(request: h11.Request) -> ProxyRequest:
    """Return what `request` asks for.

    Raises:
        BadRequestError: It can be read in more than one way, or is nothing for a proxy.
    """
    if request.http_version not in _VERSIONS:
        raise BadRequestError("the proxy speaks HTTP/1.1")
    if len([name for name, _ in request.headers if name in _FRAMING]) > 1:
        raise BadRequestError("the request tells its length twice")
    if request.method == b"CONNECT":
        return _tunnel(request)
    target = _TARGET.fullmatch(request.target)
    if target is None:
        raise BadRequestError("ask the proxy for http://HOST/PATH, or with CONNECT for HOST:PORT")
    authority = _authority(target["authority"])
    for name, value in request.headers:
        if name == b"host" and _place(_authority(value)) != _place(authority):
            raise BadRequestError("the header Host names another host than the request")
    headers = [(b"Host", str(authority).encode("ascii")), *forwarded_headers(request), (b"Connection", b"close")]
    path = target["rest"] if target["rest"].startswith(b"/") else b"/" + target["rest"]
    return ProxyRequest(authority, h11.Request(method=request.method, target=path, headers=headers))


def forwarded_headers(event: h11.Request | h11.InformationalResponse | h11.Response) -> RawHeaders:
    """Return the headers that go from one side to the other, as they were written; without `Host`."""
    values = [value.lower().split(b",") for name, value in event.headers if name == b"connection"]
    named = {word.strip() for words in values for word in words}
    dropped = (_FOR_PROXY | named | {b"host"}).difference(_FRAMING)
    return [(name, value) for name, value in event.headers.raw_items() if name.lower() not in dropped]


def _tunnel(request: h11.Request) -> ProxyRequest:
    authority = _authority(request.target)
    if authority.port is None:
        raise BadRequestError("CONNECT names no port")
    if any(name in _FRAMING for name, _ in request.headers):
        raise BadRequestError("CONNECT has no body")
    for name, value in request.headers:
        if name == b"host" and _authority(value).host != authority.host:
            raise BadRequestError("the header Host names another host than CONNECT")
    return ProxyRequest(authority, None)


def _authority(text: bytes) -> Authority:
    try:
        return plain_authority(text.decode("ascii"))
    except UnicodeDecodeError:
        raise BadRequestError("the host holds bytes that are not ASCII") from None
    except ToolError as exc:
        raise BadRequestError(str(exc)) from exc


def _place(authority: Authority) -> tuple[str, int]:
    return authority.host, HTTP_PORT if authority.port is None else authority.port


MAX_HEAD_BYTES = 32_768
"""Longest head of a request, and longest head of a chunk."""
_MAX_ANSWER_HEAD_BYTES = 131_072
_MAX_LEFT_OVER_CHUNKS = 64
_MAX_DIALLED = 4


class NotReachableError(ToolError):
    """The proxy leads to no such host; says why."""


@dataclass(frozen=True, slots=True)
class Route:
    """Addresses at which a host is dialled."""

    host: str
    port: int
    addresses: tuple[str, ...]
    """IP addresses; these and no others."""
    proxy: "UpstreamProxy | None" = None
    """The user's own proxy, through which the host is dialled instead."""


FindRoute: TypeAlias = Callable[[Authority, int], Awaitable[Route]]
"""Returns where to dial for a host; the port counts where it has none. Raises ToolError."""


@dataclass(frozen=True, slots=True)
class ProxyTimeouts:
    """Time limits of a connection, in seconds."""

    head_s: float = 20.0
    """Limit for a request to arrive, without its body."""
    dial_s: float = 15.0
    idle_s: float = 900.0
    """Limit for anything to arrive in either direction; a server may compute for minutes before it answers."""
    linger_s: float = 1.0
    """Limit for a client to take the end of an answer, while it is still sending itself."""


class ProxyConnection:
    """Serves one client.

    Args:
        stream: The connection; the caller closes it.
        find_route: Returns the addresses at which a host is dialled.
        dial: Connects.
        note: Gets each refusal before the client does: the client may end at once, and its caller asks for them then.
        waits: How long it may take.
        say: Told all that the client is told in place of an answer of a server.
    """

    def __init__(
        self,
        stream: ByteStream,
        *,
        find_route: FindRoute,
        dial: Dial,
        note: Callable[[BadRequestError | NotReachableError], None],
        timeouts: ProxyTimeouts,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = HttpSide(stream, h11.SERVER, MAX_HEAD_BYTES)
        self._find_route = find_route
        self._dial = dial
        self._note = note
        self._timeouts = timeouts
        self._say = say
        self._is_head = False
        self._idle = CancelScope()

    async def serve(self) -> None:
        """Carry one tunnel or answer one request."""
        try:
            await self._serve()
        except (BadRequestError, NotReachableError) as exc:
            self._note(exc)
            await self.refuse(400 if isinstance(exc, BadRequestError) else 403, str(exc))
        except ToolError as exc:
            await self.refuse(502, str(exc))
        except h11.RemoteProtocolError as exc:
            await self.refuse(
                exc.error_status_hint, "this is not a request that the proxy can read, or a far too long one"
            )
        except TimeoutError:
            await self.refuse(408, "the request did not arrive in time")
        except GONE:
            return

    async def refuse(self, status: int, text: str) -> None:
        """Tell the client what is in its way, unless it has an answer already.

        Many programs show only the first line of the answer to CONNECT, so the text is there, too.
        """
        if self._client.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        self._say(text)
        line = f"panpan: {text}"
        body = f"{line}\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        with suppress(*GONE):
            await self._client.send(
                h11.Response(
                    status_code=status,
                    reason=re.sub(r"[^ -~]", "?", line).encode("ascii"),
                    headers=[*headers, ("Connection", "close")],
                )
            )
            if not self._is_head:
                await self._client.send(h11.Data(data=body))
            await self._client.send(h11.EndOfMessage())
            await self._linger()

    async def _serve(self) -> None:
        with anyio.fail_after(self._timeouts.head_s):
            request = await self._client.next_event()
        if not isinstance(request, h11.Request):
            return  # it left without a request
        self._is_head = request.method == b"HEAD"
        asked = parse_proxy_request(request)
        route = await self._find_route(asked.authority, HTTP_PORT)
        forwarded, is_tunnel = asked.forwarded, True
        if forwarded is not None and route.proxy is not None and route.proxy.forwards("http"):
            forwarded, is_tunnel = route.proxy.forwarded(forwarded, str(asked.authority)), False
        async with await self._connected(route, is_tunnel=is_tunnel) as stream:
            with self._idle:
                self._stir()
                if forwarded is None:
                    await self._tunnel(stream)
                else:
                    await self._forward(forwarded, stream, is_old=request.http_version == b"1.0")
        if self._idle.cancelled_caught:
            await self.refuse(504, f"{route.host} said nothing for {self._timeouts.idle_s:g} s")

    async def _connected(self, route: Route, *, is_tunnel: bool) -> ByteStream:
        if route.proxy is not None:
            with anyio.move_on_after(self._timeouts.dial_s):
                return await route.proxy.connect(route.host, route.port, is_tunnel=is_tunnel)
            raise ToolError(f"{route.host} does not answer through the proxy of your settings")
        for address in route.addresses[:_MAX_DIALLED]:
            with suppress(OSError), anyio.move_on_after(self._timeouts.dial_s):
                return await self._dial(address, route.port)
        raise ToolError(f"{route.host} does not answer at port {route.port}")

    def _stir(self) -> None:
        self._idle.deadline = anyio.current_time() + self._timeouts.idle_s

    async def _tunnel(self, server: ByteStream) -> None:
        await self._client.send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
        early, _ = self._client.http.trailing_data
        if early:
            await server.send(early)
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(self._pump, server, self._client.stream)
            await self._pump(self._client.stream, server)

    async def _pump(self, source: ByteStream, sink: ByteStream) -> None:
        """Pass bytes on until the source ends, and then the end."""
        try:
            async for chunk in source:
                self._stir()
                await sink.send(chunk)
                self._stir()
            await sink.send_eof()
        except GONE:
            self._idle.cancel()

    async def _forward(self, request: h11.Request, stream: ByteStream, *, is_old: bool) -> None:
        server = HttpSide(stream, h11.CLIENT, _MAX_ANSWER_HEAD_BYTES)
        problems: list[Exception] = []
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(self._send_request, request, server, task_group.cancel_scope, problems)
            try:
                await self._send_answer(server, is_old=is_old)
            except (ToolError, *GONE) as exc:
                problems.append(exc)
            task_group.cancel_scope.cancel()
        if problems:
            raise problems[0]
        await self._linger()

    async def _send_request(
        self, request: h11.Request, server: HttpSide, exchange: CancelScope, problems: list[Exception]
    ) -> None:
        """Send the request and its body; end the exchange when the client leaves or sends what is no body."""
        event: h11.Event = request
        try:
            while not isinstance(event, h11.EndOfMessage):
                if not await server.try_send(event):
                    return  # it may still have answered
                event = await self._client.next_event()
                self._stir()
            if await server.try_send(event):
                for _ in range(_MAX_LEFT_OVER_CHUNKS):
                    await self._client.stream.receive()  # drop what follows the one request
        except h11.RemoteProtocolError as exc:
            problems.append(exc)
        except GONE:
            pass
        exchange.cancel()

    async def _send_answer(self, server: HttpSide, *, is_old: bool) -> None:
        """Send the answer on to the client; raise `ToolError` if the server sends none, or not to its end."""
        is_whole = False
        while not is_whole:
            try:
                event = await server.next_event()
            except (h11.RemoteProtocolError, *GONE) as exc:
                raise ToolError("the server ended the connection without a whole answer") from exc
            self._stir()
            match event:
                case h11.InformationalResponse() if is_old:
                    continue
                case h11.InformationalResponse() | h11.Response():
                    await self._client.send(_answer_head(event))
                case h11.Data() | h11.EndOfMessage():
                    await self._client.send(event)
                case _:
                    raise ToolError("the server ended the connection without an answer")
            is_whole = isinstance(event, h11.EndOfMessage)

    async def _linger(self) -> None:
        """Say that no more comes, and wait: closed while a client still sends, a connection loses what it was sent."""
        with suppress(*GONE), anyio.move_on_after(self._timeouts.linger_s):
            await self._client.stream.send_eof()
            for _ in range(_MAX_LEFT_OVER_CHUNKS):
                await self._client.stream.receive()


def _answer_head(event: h11.InformationalResponse | h11.Response) -> h11.InformationalResponse | h11.Response:
    headers = list(forwarded_headers(event))
    if isinstance(event, h11.InformationalResponse):
        return h11.InformationalResponse(status_code=event.status_code, headers=headers, reason=event.reason)
    closing = [*headers, (b"Connection", b"close")]
    return h11.Response(status_code=event.status_code, headers=closing, reason=event.reason)


MAX_REFUSED_CONNECTIONS = 32
"""Connections that are told at the same time that there are too many; others wait in the system's queue."""
_AGAIN_S = 0.1
"""Seconds until connections are taken again after one could not be, such as for want of file descriptors."""


class ConnectionLimit:
    """Connections of a proxy that are served at the same time; one too many is told so."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    async def serve(self, connection: ProxyConnection, stream: SocketStream, note: Callable[[ToolError], None]) -> None:
        """Serve a connection and close its stream; a bug costs this connection and nothing else, and is noted."""
        self._count += 1
        try:
            async with stream:
                if self._count > self._most:
                    await connection.refuse(503, f"{self._most} connections are open at the same time already")
                else:
                    await connection.serve()
        except Exception as exc:
            note(ToolError(f"panpan's proxy failed unexpectedly: {type(exc).__name__}: {exc}"))
        finally:
            self._count -= 1


async def answer_connections(
    listener: SocketListener, answer: Callable[[SocketStream], Awaitable[None]], most: int
) -> None:
    """Answer connections until it is cancelled, `most` at the same time; `answer` serves one, and closes it."""
    free = anyio.Semaphore(most)

    async def answered(stream: SocketStream) -> None:
        try:
            await answer(stream)
        finally:
            free.release()

    async with anyio.create_task_group() as task_group:
        while True:
            await free.acquire()
            try:
                stream = await listener.accept()
            except (BrokenResourceError, OSError):  # the first is what trio makes of the second
                free.release()
                await anyio.sleep(_AGAIN_S)
            else:
                task_group.start_soon(answered, stream)
