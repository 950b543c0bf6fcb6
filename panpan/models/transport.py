"""Transport of prepared bytes through an SDK's client, and of the raw stream of the answer.

The rule: every failure between here and the server is raised as an error of our own tree, mapped once, with the SDK's
or the network's error as its cause. Nothing is retried here, and the SDK is imported by the first request.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
from pydantic_core import from_json

from panpan.errors import PanpanError, ProviderError, StreamError
from panpan.models.sdk_clients import SdkClient, request_error, request_id_of
from panpan.models.wire_errors import WireError, one_line, provider_error, read_error_body
from panpan.system.text.redact import Redactor
from panpan.types.dataclass import dataclass

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Longest event; twice the limit on the arguments of a tool."""

_BOM = b"\xef\xbb\xbf"


ServerSentEvent: TypeAlias = tuple[bytes, bytes]
"""Name and data of one event. The name is empty if the stream gave none, which means "message" in the standard.

The data may be empty, too: servers keep a connection alive with such events.
"""

_USUAL = re.compile(rb"(?:\A|(?<=\n\n))(?:event: ([^\n]*)\n)?data: ([^\n]*)(?=\n\n|\Z)")
"""A whole event of one line of data, with or without a name before it."""


class SseParser:
    """Parser of one stream of server-sent events, whose bytes may come in pieces of any size.

    It follows the WHATWG standard (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6), but
    skips `id` and `retry`, which are for reconnecting browsers. Data stay bytes, which a JSON reader decodes faster.
    Streams have tens of thousands of events, so the usual form has a fast path.

    Args:
        sender: Name of the sender, for messages.
        max_event_bytes: Longest event that is accepted.
    """

    def __init__(self, sender: str = "the server", *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._sender = sender
        self._max_event_bytes = max_event_bytes
        self._rest = bytearray()  # the event that has not ended yet, line ends already LF
        self._ended_in_cr = False
        self._is_at_start = True

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that end in this chunk.

        Raises:
            StreamError: An event is longer than the limit.
        """
        if self._is_at_start:
            chunk = self._without_bom(chunk)
        if self._ended_in_cr or b"\r" in chunk:
            chunk = self._with_lf(chunk)
        data = self._complete(chunk)
        if data is None:
            return []
        if len(data) <= self._max_event_bytes:
            events: list[ServerSentEvent] = _USUAL.findall(data)
            if len(events) == data.count(b"\n\n") + 1:
                return events
        blocks = data.split(b"\n\n")
        if max(map(len, blocks)) > self._max_event_bytes:
            raise self._too_long()
        return [event for block in blocks if (event := _event_of(block)) is not None]

    def finish(self) -> list[ServerSentEvent]:
        """Return the last event if the stream ended without the blank line after it.

        The standard drops it, but some servers end with a bare `data: [DONE]`. An event that was cut in the middle is
        not valid JSON, so the reader rejects it.
        """
        block, self._rest = bytes(self._rest), bytearray()
        event = _event_of(block)
        return [] if event is None else [event]

    def _complete(self, chunk: bytes) -> bytes | None:
        """Return the bytes up to the last blank line, and keep those after it; None if no event ends."""
        rest = self._rest
        if not rest:
            head, blank_line, tail = chunk.rpartition(b"\n\n")
        else:
            searched = max(0, len(rest) - 1)  # so that a long event in small chunks is searched only once
            rest += chunk
            if rest.find(b"\n\n", searched) < 0:
                if len(rest) > self._max_event_bytes:
                    raise self._too_long()
                return None
            head, blank_line, tail = bytes(rest).rpartition(b"\n\n")
            self._rest = rest = bytearray()
        rest += tail
        if len(rest) > self._max_event_bytes:
            raise self._too_long()
        return head if blank_line else None

    def _without_bom(self, chunk: bytes) -> bytes:
        start = bytes(self._rest) + chunk
        self._rest = bytearray()
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._rest += start
            return b""
        self._is_at_start = False
        return start.removeprefix(_BOM)

    def _with_lf(self, chunk: bytes) -> bytes:
        """Return the chunk with LF for every line end; a CR ends its line at once, and an LF after it is skipped."""
        if not chunk:
            return chunk
        if self._ended_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._ended_in_cr = False
            if not chunk:
                return chunk
        self._ended_in_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _too_long(self) -> StreamError:
        return StreamError(f"{self._sender} sent an event of more than {self._max_event_bytes:,} bytes")


def _event_of(block: bytes) -> ServerSentEvent | None:
    """Return the event of these lines, or None if they have no line of data."""
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return (name, b"\n".join(data)) if data else None


DEFAULT_IDLE_TIMEOUT_S = 120.0
CONNECT_TIMEOUT_S = 15.0
MAX_REPLY_BYTES = 256 * 1024 * 1024
"""Bytes of one answer on the wire, keep-alives included; no honest reply comes near."""

_MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
_CLOSE_TIMEOUT_S = 2.0
_LAST_WORDS_S = 2.0  # waits for the usage that follows a finish reason
_DRAIN_S = 0.25  # waits for the end of the answer, which mostly came with its last event


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A reply as one JSON document, from a server or proxy that does not stream."""

    document: dict[str, Any]


WireRead: TypeAlias = list[ServerSentEvent] | WholeReply
"""Result of one read of the network."""


class Transport:
    """The connection to one server.

    Args:
        provider: Name for messages.
        open_client: Opens the SDK's client; called once, in a thread, since the import takes a second.
        secrets: Texts that no message may show.
        idle_timeout_s: Longest wait for the next bytes of an answer, in seconds.
        max_reply_bytes: Longest answer.
    """

    def __init__(
        self,
        *,
        provider: str,
        open_client: Callable[[], SdkClient],
        secrets: tuple[str, ...] = (),
        idle_timeout_s: float = DEFAULT_IDLE_TIMEOUT_S,
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.provider = provider
        self.redactor = Redactor(secret for secret in secrets if secret)
        self._open_client = open_client
        self._idle_timeout_s = idle_timeout_s
        self._max_reply_bytes = max_reply_bytes
        self._sdk: SdkClient | None = None
        self._opening = anyio.Lock()

    async def stream(self, path: str, body: bytes) -> AsyncGenerator[WireRead, None]:
        """Send `body` and yield the events of each read of the network, or the one document that came instead.

        Raises:
            ProviderError: The request failed, or the answer is no event stream.
            RetryableError: The request failed, but another try may succeed.
            StreamError: The answer stalled, broke off, or has an event that is too long.
        """
        response = await self._send(path, body, accept="text/event-stream")
        try:
            async with aclosing(self._chunks(response)) as chunks:
                first = await anext(chunks, b"")
                if _is_event_stream(response.headers.get("content-type", ""), first):
                    parser = SseParser(self.provider)
                    yield parser.feed(first)
                    async for chunk in chunks:
                        yield parser.feed(chunk)
                    yield parser.finish()
                else:
                    yield WholeReply(await self._document(response, first, chunks))
        finally:
            await _bounded(response.aclose)

    async def request(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Send `body`, or a GET if there is none, and return the document of the answer.

        Raises:
            ProviderError: The request failed, or the answer is not a JSON object.
        """
        response = await self._send(path, body, accept="application/json")
        try:
            async with aclosing(self._chunks(response)) as chunks:
                return await self._document(response, b"", chunks)
        finally:
            await _bounded(response.aclose)

    def error(self, error: WireError, *, is_mid_stream: bool) -> ProviderError:
        """Return our error for the server's, without secrets."""
        return provider_error(error, provider=self.provider, redactor=self.redactor, is_mid_stream=is_mid_stream)

    async def aclose(self) -> None:
        """Close the connections."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await _bounded(sdk.client.close)

    async def _send(self, path: str, body: bytes | None, *, accept: str) -> Any:
        sdk = await self._client()
        import httpx2  # the client has imported it in its thread; a first import here would block the event loop

        timeout = httpx2.Timeout(self._idle_timeout_s, connect=min(CONNECT_TIMEOUT_S, self._idle_timeout_s))
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        options = {
            "headers": headers if body is None else {**headers, "Content-Type": "application/json"},
            "timeout": timeout,
            "follow_redirects": False,  # a key goes only to the configured address
        }
        try:
            if body is None:
                return await sdk.client.get(path, cast_to=httpx2.Response, options=options, stream=True)
            return await sdk.client.post(path, cast_to=httpx2.Response, content=body, options=options, stream=True)
        except (sdk.error_type, httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise request_error(
                exc, provider=self.provider, redactor=self.redactor, idle_timeout_s=self._idle_timeout_s
            ) from exc
        except UnicodeError as exc:
            raise ProviderError(
                f"a header for {self.provider} contains characters that are invalid in headers", provider=self.provider
            ) from exc

    async def prepare(self) -> None:
        """Open the SDK's client; ignore errors, which the first request raises again."""
        with suppress(PanpanError):
            await self._client()

    async def _client(self) -> SdkClient:
        if self._sdk is not None:
            return self._sdk
        async with self._opening:
            if self._sdk is None:
                self._sdk = await anyio.to_thread.run_sync(self._open_client, abandon_on_cancel=True)
            return self._sdk

    async def _chunks(self, response: Any) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the answer as they come, and raise the network's errors as ours."""
        import httpx2

        size = 0
        try:
            is_encoded = response.headers.get("content-encoding", "identity") != "identity"
            async with aclosing(response.aiter_bytes() if is_encoded else response.aiter_raw()) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._max_reply_bytes:
                        raise ProviderError(
                            f"{self.provider} sent more than {self._max_reply_bytes:,} bytes for one reply",
                            provider=self.provider,
                            request_id=request_id_of(response.headers),
                        )
                    yield chunk
        except httpx2.TimeoutException as exc:
            reason = f"{self.provider} sent nothing for {self._idle_timeout_s:g} seconds in the middle of its reply"
            raise self._stream_error(reason, response) from exc
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            detail = one_line(str(exc), self.redactor) or type(exc).__name__
            reason = f"the connection to {self.provider} broke in the middle of the reply: {detail}"
            raise self._stream_error(reason, response) from exc

    async def _document(self, response: Any, first: bytes, chunks: AsyncGenerator[bytes, None]) -> dict[str, Any]:
        data = bytearray(first)
        async for chunk in chunks:
            data += chunk
            if len(data) > _MAX_DOCUMENT_BYTES:
                break
        content_type = response.headers.get("content-type", "no content type")
        try:
            document = from_json(bytes(data))
        except ValueError:
            document = None
        if not isinstance(document, dict):
            start = one_line(bytes(data[:200]).decode("utf-8", "replace"), self.redactor)
            raise ProviderError(
                f"{self.provider} answered with {one_line(content_type)} that is neither an event stream nor a JSON "
                f"object; check the base URL (the answer begins: {start!r})",
                provider=self.provider,
                status=response.status_code,
                request_id=request_id_of(response.headers),
            )
        if document.get("error"):
            said = read_error_body(document)
            raise self.error(replace(said, request_id=request_id_of(response.headers)), is_mid_stream=False)
        return document

    def _stream_error(self, message: str, response: Any) -> StreamError:
        return StreamError(message, provider=self.provider, request_id=request_id_of(response.headers))


async def next_read(reads: AsyncGenerator[WireRead, None], *, has_ended: bool) -> WireRead | None:
    """Return the next read, or None if nothing more comes.

    Args:
        reads: The reads of `Transport.stream`.
        has_ended: True if the reply is complete; then wait only briefly for more, and ignore errors.
    """
    if not has_ended:
        return await anext(reads, None)
    with suppress(ProviderError), anyio.move_on_after(_LAST_WORDS_S):
        return await anext(reads, None)
    return None


async def drain(reads: AsyncGenerator[WireRead, None]) -> None:
    """Read the rest of a finished answer for a short time, so that its connection can serve the next request."""
    with suppress(ProviderError), anyio.move_on_after(_DRAIN_S):
        async for _ in reads:
            pass


def _is_event_stream(content_type: str, first: bytes) -> bool:
    """Return True if the answer is an event stream; with another content type, its first byte decides."""
    if content_type.partition(";")[0].strip().lower() == "text/event-stream":
        return True
    return not first.lstrip(b"\xef\xbb\xbf \r\n\t").startswith((b"{", b"[", b"<")) and bool(first)


async def _bounded(close: Callable[[], Awaitable[None]]) -> None:
    """Close something even while cancelled, but not for long."""
    with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
        await close()
