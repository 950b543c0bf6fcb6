"""An answer of a web server, while its body comes."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio
import h11

from panpan.errors import ToolError
from panpan.system.web.decoding import Decoder
from panpan.system.web.http_side import GONE, HttpSide
from panpan.system.web.redirects import WebHeaders, WebRequest

BODY_S = 120.0
_OTHER_CODINGS = ("br", "zstd", "compress", "gzip", "deflate")


class GuardedResponse:
    """Made by `GuardedClient.stream`; its body can be read once, while that is entered.

    Args:
        request: What was asked for in the end.
        status: From 200 to 599.
        headers: Of the answer.
        history: The addresses before, in order.
        side: Where the body comes from.
        timeout_s: Seconds between two pieces of it.

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
        """Where the answer came from, after all redirects; without what stands behind `#`."""
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
            ToolError: It was cut, stood still, or cannot be decoded.
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
        """Return the whole body.

        Args:
            max_bytes: Bytes that it may have, decoded.
            within_s: Seconds that it may take to come.

        Raises:
            ToolError: It has more, or did not come whole in time.
        """
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
    """Return how the body is to be decoded; empty where it stays as it comes."""
    coding = headers.get("content-encoding", "").strip().lower().removeprefix("x-")
    if coding in ("", "identity"):
        return ""
    asked = {name.partition(";")[0].strip().lower() for name in request.headers["accept-encoding"].split(",")}
    if asked <= {"", "identity"}:
        return ""  # for whoever wants the bytes as they are
    if coding not in asked or coding not in ("gzip", "deflate"):
        named = f" {coding}" if coding in _OTHER_CODINGS else ""  # no other words of a server's are told
        raise ToolError(f"{request.plain.host} answers in a coding{named} that was not asked for")
    return coding
