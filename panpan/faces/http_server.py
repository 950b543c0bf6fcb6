"""An HTTP server on loopback, for faces that speak HTTP: uvicorn, which leaves the signals alone and waits for nobody.

The rule: a connection that sends nothing is closed, so that connections are bounded whoever opens them.
"""

import logging
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import uvicorn
from anyio import CancelScope, create_task_group
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_END_S = 5
_HEAD_S = 10.0
"""Seconds that a connection has for the head of a request."""
_MAX_WAITING = 128
"""Most connections that wait for a request."""


@asynccontextmanager
async def served(
    app: ASGIApp,
    listening: socket.socket,
    *,
    max_requests: int,
    ws: Literal["none", "websockets-sansio"] = "none",
    certificate: tuple[str, str] | None = None,
) -> AsyncGenerator[None, None]:
    """Serve an application inside the block.

    Args:
        app: The application.
        listening: Socket that listens.
        max_requests: Most requests at the same time; further ones get the status 503.
        ws: Library for WebSockets.
        certificate: Files with the certificate and its key, to speak TLS; None for plain HTTP.
    """
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())  # it would print text of clients
    logging.getLogger("uvicorn").propagate = False
    cert, key = certificate or (None, None)
    config = uvicorn.Config(
        _Limited(app, max_requests),
        ws=ws,
        lifespan="off",  # it is ours, so that turns end before their connections
        log_config=None,
        access_log=False,
        limit_concurrency=max_requests + _MAX_WAITING,  # it counts connections
        timeout_graceful_shutdown=_END_S,
        server_header=False,
        http=_Patient,
        proxy_headers=False,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
    web = _Web(config)
    async with create_task_group() as group:
        group.start_soon(web.serve_at, listening)
        try:
            yield
        finally:
            web.should_exit = True


class _Limited:
    """Answers requests that are too many at once with the status 503."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._running >= self._most:
            await PlainTextResponse("Service Unavailable", 503, {"Connection": "close"})(scope, receive, send)
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1


class _Patient(H11Protocol):
    """A connection that is closed if no request comes over it in time, or if its client takes no response.

    uvicorn waits for ever for a first request, for one of which a byte has come, and for a client that stopped reading.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._unsent = 0
        self._timer = self.loop.call_later(_HEAD_S / 2, self._look)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waits_since = self.loop.time()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._timer.cancel()  # the connection is the WebSocket's from now on
        super().handle_websocket_upgrade(event)

    def shutdown(self) -> None:
        """Do as uvicorn does, and end a response that has begun: it is a stream, and would go on."""
        super().shutdown()
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()

    @property
    def _waits(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """Close a connection if too many wait: one that never sent a request, else the one that waits longest."""
        waiting = [one for one in self.connections if isinstance(one, _Patient) and one._waits]
        if len(waiting) > _MAX_WAITING:
            longest = min(waiting, key=lambda one: (one.cycle is not None, one._waits_since))
            longest.transport.abort()
            self.connections.discard(longest)  # at once, since many may come before the loop closes it

    def _look(self) -> None:
        unsent, before = self.transport.get_write_buffer_size(), self._unsent
        self._unsent = unsent
        is_stuck = unsent > 0 and unsent >= before > 0
        if is_stuck and (self._waits or self.transport.is_closing()):
            self.transport.abort()
        elif self._waits and not unsent and self.loop.time() - self._waits_since >= _HEAD_S:
            self.transport.close()
        self._timer = self.loop.call_later(_HEAD_S / 2, self._look)


class _Web(uvicorn.Server):
    """Ends once `should_exit` is set, and leaves the signals alone."""

    async def serve_at(self, listening: socket.socket) -> None:
        with CancelScope(shield=True):
            await self.serve([listening])

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
