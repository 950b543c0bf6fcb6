"""The user's own proxy on the way out: how a connection goes through it.

The rule: the host is checked by its name before the proxy hears of it, since the proxy looks up the address itself.
"""

import ssl
from base64 import b64encode
from collections.abc import Callable
from ipaddress import ip_address
from typing import Literal, Self, cast
from urllib.parse import unquote

import anyio
import h11
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from panpan.errors import ToolError
from panpan.system.web.exchange import GONE, HttpSide
from panpan.system.web.url_guard import plain_authority
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Kind = Literal["http", "https", "socks5"]

_URL = compile_late(
    r"(?P<kind>https?|socks5h?)://(?:(?P<user>[^@:/]*):(?P<password>[^@/]*)@)?(?P<authority>[^/@?#]+)/?"
)
_PORTS: dict[Kind, int] = {"http": 80, "https": 443, "socks5": 1080}
_MAX_HEAD_BYTES = 65_536
_MAX_LOGIN_BYTES = 255
"""RFC 1929."""


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """A proxy that leads to the web. Made by `parse`."""

    kind: Kind
    host: str
    port: int
    user: str = ""
    password: str = ""
    certificates: Callable[[], ssl.SSLContext] = ssl.create_default_context
    """Says what is demanded of the certificate of a proxy that speaks TLS; called in a thread."""
    require_open: Callable[[str], None] = lambda _: None
    """Raises ToolError for a host that the user has closed."""

    @classmethod
    def parse(cls, url: str, certificates: Callable[[], ssl.SSLContext] = ssl.create_default_context) -> Self:
        """Return the proxy at `url`, such as `http://proxy.example.org:3128` or `socks5://user:password@127.0.0.1:1080`.

        Raises:
            ToolError: It is no such address; the error does not repeat it, as it may hold a password.
        """
        found = _URL.fullmatch(url)
        if found is None:
            raise ToolError("is not a proxy; write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT")
        kind = cast("Kind", found["kind"].removesuffix("h"))
        authority = plain_authority(found["authority"])
        user, password = unquote(found["user"] or ""), unquote(found["password"] or "")
        if max(len(user.encode()), len(password.encode())) > _MAX_LOGIN_BYTES:
            raise ToolError(f"the user name or password of the proxy has more than {_MAX_LOGIN_BYTES} bytes")
        return cls(kind, authority.host, authority.port or _PORTS[kind], user, password, certificates)

    def forwards(self, scheme: str) -> bool:
        """Return True if a request of this scheme is sent to the proxy itself, and not through a tunnel."""
        return scheme == "http" and self.kind != "socks5"

    def forwarded(self, request: h11.Request, authority: str) -> h11.Request:
        """Return a request as it is sent to the proxy, where it `forwards` that."""
        target = b"http://" + authority.encode("ascii") + request.target
        return h11.Request(method=request.method, target=target, headers=[*request.headers.raw_items(), *self._login()])

    async def connect(self, host: str, port: int, *, is_tunnel: bool) -> ByteStream:
        """Return a connection that leads to `host` (a tunnel), or to the proxy that `forwards` the request.

        Raises:
            ToolError: The host is closed, or the proxy does not answer or refuses it.
        """
        self.require_open(host)
        try:
            stream: ByteStream = await anyio.connect_tcp(self.host, self.port)
        except OSError as exc:
            raise ToolError(f"the proxy {self._name} does not answer; look at [web] proxy in your settings") from exc
        try:
            if self.kind == "https":
                context = await anyio.to_thread.run_sync(self.certificates)
                stream = await TLSStream.wrap(
                    stream, hostname=self.host, ssl_context=context, standard_compatible=False
                )
            if self.kind == "socks5":
                await self._ask_socks(stream, host, port)
            elif is_tunnel:
                await self._ask_http(stream, host, port)
        except BaseException as exc:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(stream)
            if isinstance(exc, ssl.SSLError):
                raise ToolError(f"there is no safe connection to the proxy {self._name}: {exc.reason}") from exc
            if isinstance(exc, (*GONE, h11.RemoteProtocolError)):
                raise ToolError(f"the proxy {self._name} ended the connection; look at [web] proxy") from exc
            raise
        return stream

    @property
    def _name(self) -> str:
        return f"{self.host}:{self.port}"

    def _login(self) -> list[tuple[bytes, bytes]]:
        if not self.user and not self.password:
            return []
        return [(b"Proxy-Authorization", b"Basic " + b64encode(f"{self.user}:{self.password}".encode()))]

    async def _ask_http(self, stream: ByteStream, host: str, port: int) -> None:
        side = HttpSide(stream, h11.CLIENT, _MAX_HEAD_BYTES)
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        headers = [(b"Host", target.encode("ascii")), *self._login()]
        await side.send(h11.Request(method="CONNECT", target=target, headers=headers))
        answer = await side.next_event()
        while isinstance(answer, h11.InformationalResponse):
            answer = await side.next_event()
        if not isinstance(answer, h11.Response) or not 200 <= answer.status_code < 300:
            why = f"status {answer.status_code}" if isinstance(answer, h11.Response) else "no answer"
            raise self._refusal(host, why)
        if side.http.trailing_data[0]:
            raise ToolError(f"the proxy {self._name} spoke before it was asked; look at [web] proxy")

    async def _ask_socks(self, stream: ByteStream, host: str, port: int) -> None:
        """Speak SOCKS5 (RFC 1928, with the login of RFC 1929) up to the tunnel."""
        has_login = bool(self.user or self.password)
        await stream.send(b"\x05\x02\x00\x02" if has_login else b"\x05\x01\x00")
        version, method = await _exactly(stream, 2)
        if version != 5:
            raise ToolError(f"the proxy {self._name} does not speak SOCKS5; look at [web] proxy")
        if method == 2 and has_login:
            await stream.send(b"\x01" + _counted(self.user.encode()) + _counted(self.password.encode()))
            method = (await _exactly(stream, 2))[1]
        if method != 0:
            raise self._refusal(host, "it wants another user name and password")
        try:
            address = ip_address(host)
            written = (b"\x01" if address.version == 4 else b"\x04") + address.packed
        except ValueError:
            written = b"\x03" + _counted(host.encode("ascii"))
        await stream.send(b"\x05\x01\x00" + written + port.to_bytes(2))
        _, reply, _, kind = await _exactly(stream, 4)
        if reply != 0:
            raise self._refusal(host, f"reply {reply}")
        length = {1: 4, 4: 16}.get(kind) or (await _exactly(stream, 1))[0]
        await _exactly(stream, length + 2)

    def _refusal(self, host: str, why: str) -> ToolError:
        advice = "; write its user name and password into [web] proxy" if why == "status 407" else ""
        return ToolError(f"the proxy {self._name} does not lead to {host} ({why}){advice}")


async def _exactly(stream: ByteStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await stream.receive(count - len(data))
    return data


def _counted(data: bytes) -> bytes:
    return bytes([len(data)]) + data
