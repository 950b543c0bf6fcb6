"""One request over a connection of its own, up to the head of its answer.

The rule: a connection carries one exchange and is closed, so that no answer can be taken for that of another request.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import h11

from panpan.errors import ToolError
from panpan.system.web.connector import Connector, close
from panpan.system.web.http_side import GONE, HttpSide
from panpan.system.web.redirects import WebRequest

if TYPE_CHECKING:
    from panpan.system.web.upstream_proxy import UpstreamProxy

MAX_HEAD_BYTES = 131_072
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


@asynccontextmanager
async def exchanged(
    request: WebRequest, connector: Connector, timeout_s: float
) -> AsyncGenerator[tuple[HttpSide, h11.Response], None]:
    """Send a request, and give the head of its answer and where the rest of it comes from.

    Args:
        request: What is asked for.
        connector: Opens the connection.
        timeout_s: Seconds for the connection, and again for the head.

    Raises:
        ToolError: There is no answer; says why.
    """
    host = request.plain.host
    try:
        with anyio.fail_after(timeout_s):
            stream, proxy = await connector.connected(request.plain, is_own=request.is_own)
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
            if not await side.took(part):
                break  # it may have answered all the same
        while not isinstance(event := await side.next_event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise ToolError(f"{host} ended the connection without an answer")
    except (h11.LocalProtocolError, UnicodeEncodeError):  # its text holds the header, which may be a key
        raise ToolError(
            f"{host} cannot be asked: a header holds what cannot be sent, such as the end of a line in a key"
        ) from None
    except h11.RemoteProtocolError as exc:
        if side.http.trailing_data == (b"", True):
            raise ToolError(f"{host} ended the connection without an answer") from exc
        raise ToolError(f"{host} sent what is no answer of a web server, or a far too long head") from exc
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
