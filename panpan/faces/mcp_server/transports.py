"""The two ways to the server: standard input and output, and streamable HTTP.

The rule: it ends cleanly when the input ends or a signal comes, with all that runs.
"""

import logging
from collections.abc import Callable, Iterator
from hmac import compare_digest

import anyio
from anyio import create_task_group
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.serving import HttpPlace
from panpan.cli_kit.stdin import StdinReader
from panpan.cli_kit.stdio_server import end_at_signal, held_signals, own_streams
from panpan.errors import unwrap_single_exception
from panpan.faces.http_server import served
from panpan.faces.mcp_server.server import PanpanServer

MAX_BODY_BYTES = 4_000_000
MAX_MESSAGE_BYTES = 64_000_000
MAX_SESSIONS = 64
"""Most clients of the older era over HTTP that are open at the same time."""
MAX_REQUESTS = 128
"""Most requests over HTTP at the same time."""


async def serve(server: PanpanServer, http: HttpPlace | None, say: Callable[[str], None]) -> None:
    """Serve until the client of standard input goes, or a signal comes.

    Args:
        server: Answers the requests.
        http: Where to listen; None for standard input and output.
        say: Prints one line on standard error.

    Raises:
        ConfigError: The address cannot be used, or a message is far too long.
    """
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # it would print text of clients
    logging.getLogger("mcp").propagate = False
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
    names = http.names(port)
    app: ASGIApp = server.protocol.streamable_http_app(
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=list(names), allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    guarded = app if http.token is None else _WithToken(app, http.token)
    async with served(guarded, listening, max_requests=MAX_REQUESTS), server.protocol.session_manager.run():
        for line in _hints(http, port):
            say(line)
        await anyio.sleep_forever()


def _hints(http: HttpPlace, port: int) -> Iterator[str]:
    """Yield lines that say how a client reaches the server."""
    url = f"http://{http.host}:{port}/mcp"
    yield f"serving at {url}"
    if http.token is None:
        yield "every program on this machine can use it, since there is no token"
        yield f"to add it to another panpan: panpan mcp add panpan {url}"
        return
    shown = f"${{{http.variable}}}" if http.is_own_token else http.token
    yield f"to add it to another panpan: panpan mcp add -H 'Authorization: Bearer {shown}' panpan {url}"
    if not http.is_own_token:
        yield f"the token is new at each start; {http.variable} and --port keep it and the address"


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
