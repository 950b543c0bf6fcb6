"""One exchange over HTTP/1.1: the request, its redirects, the head and the body of the answer.

The rule: a connection carries one exchange and is closed, so that no answer can be taken for that of another request.
No piece of a body is large, and a body that grows out of all proportion is an error.
"""

import zlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin

import anyio
import h11
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

from panpan.errors import ToolError
from panpan.system.web.network import Connector, close
from panpan.system.web.url_guard import PlainUrl
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.system.web.upstream_proxy import UpstreamProxy


_REDIRECTS = (301, 302, 303, 307, 308)
_KEEP_METHOD = (307, 308)
_FOR_ANYBODY = frozenset({"accept", "accept-encoding", "accept-language", "if-range", "range", "user-agent"})
"""Headers that tell another origin nothing that was meant for the first one."""
_OF_BODY = ("content-encoding", "content-language", "content-location", "content-type")


class WebHeaders(Mapping[str, str]):
    """Headers by name, whatever its case; those of one name are one, with commas between (RFC 9110, section 5.3)."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for raw_name, raw_value in pairs:
            name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
            self._values[name] = f"{self._values[name]}, {value}" if name in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class WebRequest:
    """Request to a web server."""

    method: str
    plain: PlainUrl
    headers: Mapping[str, str]
    """Headers by name in lower case."""
    content: bytes | None = None
    is_own: bool = False
    """True if the user's own settings name it, so that it may lead into their network."""


def location_of(request: WebRequest, status: int, headers: WebHeaders) -> str | None:
    """Return the address that an answer sends on to, as it wrote it but whole; None if it does not."""
    if status not in _REDIRECTS or "location" not in headers:
        return None
    written = headers["location"].strip(" \t").encode("latin-1").decode("utf-8", "replace")
    try:
        return urljoin(request.plain.url, written.replace(" ", "%20"))
    except ValueError:  # brackets without an address
        raise ToolError(f"{request.plain.host} redirects to an invalid address") from None


def follow_redirect(request: WebRequest, status: int, target: PlainUrl, *, is_own: bool = False) -> WebRequest:
    """Return what is asked for at `target` (RFC 9110, section 15.4), which the user's own settings may name.

    Raises:
        ToolError: It would be asked for without TLS, or a body would go to another origin.
    """
    host = request.plain.host
    if (request.plain.scheme, target.scheme) == ("https", "http"):
        raise ToolError(f"{host} redirects from https to http, to {target.host}; that is not followed")
    is_get = status not in _KEEP_METHOD and (status == 303 or request.method == "POST") and request.method != "HEAD"
    method, content = ("GET", None) if is_get else (request.method, request.content)
    headers = dict(request.headers)
    if is_get:
        headers = {name: value for name, value in headers.items() if name not in _OF_BODY}
    if target.origin != request.plain.origin:
        if content is not None:
            raise ToolError(f"{host} redirects to {target.host}, where what was sent is not meant to go")
        headers = {name: value for name, value in headers.items() if name in _FOR_ANYBODY}
    return WebRequest(method, target, headers, content, is_own)


GONE = (BrokenResourceError, ClosedResourceError, EndOfStream, OSError)
"""Errors of a connection whose other side has left."""


class HttpSide:
    """A stream, and what h11 makes of it.

    Args:
        stream: The connection.
        role: Which side this program is.
        max_head_bytes: Most that the other side may send before a line, head or chunk of it is whole.
    """

    def __init__(self, stream: ByteStream, role: type[h11.CLIENT] | type[h11.SERVER], max_head_bytes: int) -> None:
        self.stream = stream
        self.http = h11.Connection(role, max_incomplete_event_size=max_head_bytes)

    async def next_event(self) -> h11.Event:
        await checkpoint()  # thousands of events may have arrived already, and other tasks want their turn
        while not isinstance(event := self.http.next_event(), h11.Event):
            try:
                self.http.receive_data(await self.stream.receive())
            except EndOfStream:
                self.http.receive_data(b"")
        return event

    async def send(self, event: h11.Event) -> None:
        if data := self.http.send(event):
            await self.stream.send(data)

    async def try_send(self, event: h11.Event) -> bool:
        """Send it; False if the other side has left."""
        with suppress(*GONE):
            await self.send(event)
            return True
        return False


MAX_HEAD_BYTES = 131_072
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


@asynccontextmanager
async def perform_request(
    request: WebRequest, connector: Connector, timeout_s: float
) -> AsyncGenerator[tuple[HttpSide, h11.Response], None]:
    """Send a request, and give the head of its answer and where the rest of it comes from.

    `timeout_s` counts for the connection, and again for the head.

    Raises:
        ToolError: There is no answer; says why.
    """
    host = request.plain.host
    try:
        with anyio.fail_after(timeout_s):
            stream, proxy = await connector.connect(request.plain, is_own=request.is_own)
    except TimeoutError:
        raise ToolError(f"{host} could not be reached within {timeout_s:g} s") from None
    try:
        side = HttpSide(stream, h11.CLIENT, MAX_HEAD_BYTES)
        try:
            with anyio.fail_after(timeout_s):
                head = await _head(side, request, proxy)
        except TimeoutError:
            raise ToolError(f"{host} did not answer within {timeout_s:g} s") from None
        yield side, head
    finally:
        await close(stream)


async def _head(side: HttpSide, request: WebRequest, proxy: "UpstreamProxy | None") -> h11.Response:
    """Send the request, to a proxy where there is one that forwards it, and return the head of the answer."""
    host = request.plain.host
    try:
        for part in _written(request, proxy):
            if not await side.try_send(part):
                break  # it may still have answered
        while not isinstance(event := await side.next_event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise ToolError(f"{host} ended the connection without an answer")
    except (h11.LocalProtocolError, UnicodeEncodeError):  # the error's text contains the header, which may be a key
        raise ToolError(
            f"{host} cannot be asked: a header contains invalid characters, such as the end of a line in a key"
        ) from None
    except h11.RemoteProtocolError as exc:
        if side.http.trailing_data == (b"", True):
            raise ToolError(f"{host} ended the connection without an answer") from exc
        raise ToolError(f"{host} sent an invalid HTTP answer, or a far too long head") from exc
    except GONE as exc:
        raise ToolError(f"{host} ended the connection without an answer") from exc
    return event


def _written(request: WebRequest, proxy: "UpstreamProxy | None") -> Sequence[h11.Event]:
    authority, slash, rest = request.plain.url.partition("://")[2].partition("/")
    target = quote(slash + rest.partition("#")[0], safe=_PRINTABLE)
    headers = [("host", authority), *request.headers.items(), ("connection", "close")]
    if request.content is not None:
        headers.append(("content-length", str(len(request.content))))
    head = h11.Request(method=request.method, target=target, headers=headers)
    if proxy is not None:
        head = proxy.forwarded(head, authority)
    body = () if request.content is None else (h11.Data(data=request.content),)
    return head, *body, h11.EndOfMessage()


PIECE_BYTES = 262_144
MAX_RATIO = 100
"""Bytes that may come of one; text comes to 3 to 20, tables of zeros to more."""
FREE_BYTES = 10_000_000
"""Bytes that may come of any body before the ratio counts."""

_GZIP_START = b"\x1f\x8b"
_GZIP_WBITS, _ZLIB_WBITS, _RAW_WBITS = 31, 15, -15


class Decoder:
    """Decodes one body from gzip or deflate; without a coding it passes it on."""

    def __init__(self, coding: str, host: str) -> None:
        self._coding = coding
        self._host = host
        self._zlib: zlib._Decompress | None = None
        self._is_garbage = False
        self._taken = 0
        self._given = 0

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what comes of `data`, in pieces of at most `PIECE_BYTES`.

        Raises:
            ToolError: It is not what it is said to be, or grows too much.
        """
        if not self._coding:
            yield data
            return
        self._taken += len(data)
        while data and not self._is_garbage:
            if self._zlib is None or self._zlib.eof:
                self._begin(data)
                continue
            try:
                piece = self._zlib.decompress(data, PIECE_BYTES)
            except zlib.error as exc:
                raise ToolError(f"{self._host} sent a body that is not {self._coding}: {exc}") from exc
            data = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
            if piece:
                self._count(piece)
                yield piece

    def finish(self) -> Iterator[bytes]:
        """Yield what is left at the end of the body; raise `ToolError` if the body was not whole."""
        if self._zlib is None or self._zlib.eof:
            return
        while piece := self._zlib.decompress(b"", PIECE_BYTES):
            self._count(piece)
            yield piece
        if not self._zlib.eof:
            raise ToolError(f"{self._host} ended its answer before it was whole")

    def _begin(self, data: bytes) -> None:
        """Begin a stream; what follows a whole one is another of gzip, or of no meaning (RFC 1952, section 2.2)."""
        is_first = self._zlib is None
        if not is_first and not (self._coding == "gzip" and data.startswith(_GZIP_START[: len(data)])):
            self._is_garbage = True
        elif self._coding == "gzip":
            self._zlib = zlib.decompressobj(_GZIP_WBITS)
        else:  # many servers omit the zlib frame that RFC 9110, section 8.4.1.2, requires
            self._zlib = zlib.decompressobj(_ZLIB_WBITS if _is_zlib(data) else _RAW_WBITS)

    def _count(self, piece: bytes) -> None:
        self._given += len(piece)
        if self._given > FREE_BYTES + MAX_RATIO * self._taken:
            raise ToolError(
                f"{self._host} sent {self._taken:,} bytes that grow to more than {self._given:,}; that is a "
                "decompression bomb, so reading stopped"
            )


def _is_zlib(data: bytes) -> bool:
    """True if it begins like RFC 1950, as far as it goes."""
    if len(data) < 2:
        return data[0] & 0x0F == zlib.DEFLATED
    return data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0


BODY_S = 120.0
_OTHER_CODINGS = ("br", "zstd", "compress", "gzip", "deflate")


class GuardedResponse:
    """Answer of a server, made by `GuardedClient.stream`. Its body can be read once, while that is entered.

    Raises:
        ToolError: The body comes in a coding that was not asked for.
    """

    def __init__(
        self,
        request: WebRequest,
        status: int,
        headers: WebHeaders,
        history: Sequence[str],
        side: HttpSide,
        timeout_s: float,
    ) -> None:
        self.status = status
        self.url = request.plain.url.partition("#")[0]
        """Address of the answer, after all redirects; without the part from `#` on."""
        self.headers = headers
        self.history = tuple(history)
        self._host = request.plain.host
        self._decoder = Decoder(_coding(request, headers), self._host)
        self._side = side
        self._timeout_s = timeout_s
        self._is_read = False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes, decoded. To be consumed under `aclosing`.

        Raises:
            ToolError: It was cut, stopped arriving, or cannot be decoded.
        """
        if self._is_read:
            raise RuntimeError("a body can be read once")
        self._is_read = True
        while isinstance(event := await self._next(), h11.Data):
            for piece in self._decoder.decode(bytes(event.data)):
                yield piece
        for piece in self._decoder.finish():
            yield piece

    async def read(self, max_bytes: int, *, within_s: float = BODY_S) -> bytes:
        """Return the whole body; raise `ToolError` if it has more, or did not come whole in time."""
        body = bytearray()
        try:
            with anyio.fail_after(within_s):
                async with aclosing(self.chunks()) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > max_bytes:
                            raise ToolError(f"{self._host} sends more than the {max_bytes:,} bytes that are read")
        except TimeoutError:
            raise ToolError(f"{self._host} did not send its whole answer within {within_s:g} s") from None
        return bytes(body)

    async def _next(self) -> h11.Event:
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._side.next_event()
        except TimeoutError:
            raise ToolError(f"{self._host} stopped in the middle of its answer for {self._timeout_s:g} s") from None
        except (h11.RemoteProtocolError, *GONE) as exc:
            raise ToolError(f"{self._host} ended its answer before it was whole") from exc


def _coding(request: WebRequest, headers: WebHeaders) -> str:
    """Return how the body is to be decoded; empty if it stays as it comes."""
    coding = headers.get("content-encoding", "").strip().lower().removeprefix("x-")
    if coding in ("", "identity"):
        return ""
    asked = {name.partition(";")[0].strip().lower() for name in request.headers["accept-encoding"].split(",")}
    if asked <= {"", "identity"}:
        return ""  # for callers that want the bytes as they are
    if coding not in asked or coding not in ("gzip", "deflate"):
        named = f" {coding}" if coding in _OTHER_CODINGS else ""  # never repeat other words of a server
        raise ToolError(f"{request.plain.host} answers in a coding{named} that was not asked for")
    return coding
