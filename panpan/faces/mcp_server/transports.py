"""The two ways to the server: standard input and output, and streamable HTTP.

The rule: it ends cleanly when the input ends or a signal comes, with all that runs.
"""

import logging
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hmac import compare_digest
from typing import Any

import anyio
import uvicorn
from anyio import CancelScope, create_task_group
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.serving import HttpPlace
from panpan.cli_kit.stdin import StdinReader
from panpan.cli_kit.stdio_server import end_at_signal, held_signals, own_streams
from panpan.errors import unwrap_single_exception
from panpan.faces.mcp_server.server import PanpanServer

MAX_BODY_BYTES = 4_000_000
MAX_MESSAGE_BYTES = 64_000_000
MAX_SESSIONS = 64
"""Most clients of the older era over HTTP that are open at the same time."""
MAX_REQUESTS = 128
"""Most requests over HTTP at the same time."""
_END_S = 5
_HEAD_S = 10.0
"""Seconds that a connection has for the head of its first request."""


async def serve(server: PanpanServer, http: HttpPlace | None, say: Callable[[str], None]) -> None:
    """Serve until the client of standard input goes, or a signal comes.

    Args:
        server: Answers the requests.
        http: Where to listen; None for standard input and output.
        say: Prints one line on standard error.

    Raises:
        ConfigError: The address cannot be used, or a message is far too long.
    """
    for name in ("mcp", "uvicorn"):  # they would print text of clients
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    with held_signals() as signals, unwrap_single_exception():
        async with create_task_group() as group:
            group.start_soon(end_at_signal, signals, group.cancel_scope.cancel)
            if http is None:
                await _serve_stdio(server)
            else:
                await _serve_http(server, http, say)
            group.cancel_scope.cancel("the client has gone")


async def _serve_stdio(server: PanpanServer) -> None:
    with own_streams() as (stdin, stdout):
        try:
            # the library's own streams are read and written by threads, which no signal ends
            async with stdio_server(_Lines(stdin), _Out(stdout)) as (read, write):  # type: ignore[arg-type]
                await server.protocol.run(read, write, server.protocol.create_initialization_options())
        except* BrokenPipeError:
            pass  # the client has gone


class _Lines:
    """Lines of standard input, in the form that the library reads."""

    def __init__(self, reader: StdinReader) -> None:
        self._reader = reader

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._reader.line(max_bytes=MAX_MESSAGE_BYTES)
        if line is None:
            raise StopAsyncIteration
        return line.decode(errors="replace")


class _Out:
    """Standard output, in the form that the library writes."""

    def __init__(self, writer: StdoutWriter) -> None:
        self.write = writer.write

    async def flush(self) -> None:
        pass


async def _serve_http(server: PanpanServer, http: HttpPlace, say: Callable[[str], None]) -> None:
    listening = http.listen()
    port = listening.getsockname()[1]
    names = [f"{name}:{port}" for name in http.names]
    app: ASGIApp = server.protocol.streamable_http_app(
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    config = uvicorn.Config(
        app if http.token is None else _WithToken(app, http.token),
        ws="none",
        lifespan="off",  # it is ours, so that turns end before their connections
        log_config=None,
        access_log=False,
        limit_concurrency=MAX_REQUESTS,
        timeout_graceful_shutdown=_END_S,
        server_header=False,
        http=_Patient,
    )
    web = _Web(config)
    async with create_task_group() as group:
        try:
            async with server.protocol.session_manager.run():
                group.start_soon(web.serve_at, listening)
                for line in http.hints(port):
                    say(line)
                await anyio.sleep_forever()
        finally:
            web.should_exit = True


class _Patient(H11Protocol):
    """A connection that is closed if no request comes over it in time: connections are bounded, whoever opens them.

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


class _WithToken:
    """Lets in requests with the token alone."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scheme, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        is_right = compare_digest(given, self._expected) and scheme.lower() == b"bearer"
        refusal = Response("a token is needed", 401, {"WWW-Authenticate": "Bearer"})
        await (self._app if is_right else refusal)(scope, receive, send)


class _Web(uvicorn.Server):
    """Ends once `should_exit` is set, and leaves the signals alone."""

    async def serve_at(self, listening: socket.socket) -> None:
        with CancelScope(shield=True):
            await self.serve([listening])

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
