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
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

_END_S = 5
_HEAD_S = 10.0
"""Seconds that a connection has for the head of a request."""


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
        app,
        ws=ws,
        lifespan="off",  # it is ours, so that turns end before their connections
        log_config=None,
        access_log=False,
        limit_concurrency=max_requests,
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


class _Patient(H11Protocol):
    """A connection that is closed if no request comes over it in time.

    uvicorn waits for ever for a first request, and for one of which a byte has come.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limit.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit.cancel()
        self._wait()

    def _wait(self) -> None:
        self._limit = self.loop.call_later(_HEAD_S, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        has_request = self.cycle is not None and not self.cycle.response_complete
        if not has_request and not self.transport.is_closing():
            self.transport.close()


class _Web(uvicorn.Server):
    """Ends once `should_exit` is set, and leaves the signals alone."""

    async def serve_at(self, listening: socket.socket) -> None:
        with CancelScope(shield=True):
            await self.serve([listening])

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
