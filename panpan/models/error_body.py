"""Limits on the body of an error, which the SDKs would read to its end.

The rule: the body of an answer without success is read raw, up to a size and for a time, whatever the server does; the
rest is lost. An encoded body is not read at all, since panpan does not ask for one.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import httpx2

MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_S = 10.0
"""Time limit on the whole body, in seconds."""

_CLOSE_TIMEOUT_S = 2.0


def bound_error_bodies(client: httpx2.AsyncClient, *, within_s: float = ERROR_BODY_S) -> None:
    """Make `client` limit the body of every answer without success."""

    async def bound(response: Any) -> None:
        if response.is_success:
            return
        is_encoded = response.headers.get("content-encoding", "identity").strip().lower() != "identity"
        if is_encoded:
            del response.headers["content-encoding"]
        max_bytes = 0 if is_encoded else MAX_ERROR_BYTES
        response.stream = _BoundedStream(response.stream, max_bytes=max_bytes, within_s=within_s)

    hooks = client.event_hooks
    client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), bound]}


class _BoundedStream(httpx2.AsyncByteStream):
    """The beginning of another stream, without its errors: the status, which is known, says more than they do."""

    def __init__(self, stream: httpx2.AsyncByteStream, *, max_bytes: int, within_s: float) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._within_s = within_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        deadline = anyio.current_time() + self._within_s
        room = self._max_bytes
        chunks = aiter(self._stream)
        try:
            while room > 0 and (chunk := await _next(chunks, deadline)):
                yield chunk[:room]
                room -= len(chunk)
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    async def aclose(self) -> None:
        with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
            await self._stream.aclose()


async def _next(chunks: AsyncIterator[bytes], deadline: float) -> bytes:
    """Return the next chunk; empty at the end, when the time is up, or if the connection breaks."""
    with anyio.CancelScope(deadline=deadline), suppress(httpx2.HTTPError):
        return await anext(chunks, b"")
    return b""
