"""Clients that are slow, idle, many or greedy: each has bounds, and others are served meanwhile."""

import itertools
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from panpan.errors import PanpanError
from panpan.faces import http_server
from panpan.faces.http_server import served
from panpan.faces.server.event_stream import Streams
from panpan.faces.server.guard import (
    MAX_LARGE_BODIES,
    MAX_OF_SESSION,
    MAX_TOKENS,
    SMALL_BODY_BYTES,
    Entrance,
    Guard,
    Rate,
    Tokens,
    as_response,
)
from panpan.faces.server.routes import Resource
from tests.faces.mcp_server.processes import until
from tests.faces.server.served import LIMIT_S, TOKEN, client_of, refusal_in

JSON = "Content-Type: application/json\r\n"


@dataclass
class Guarded:
    """An application behind the guard: `/length` tells how long a body is, and `/held` answers when the test says."""

    port: int
    http: httpx2.AsyncClient
    go: anyio.Event
    held: list[int]

    @asynccontextmanager
    async def connected(self, sent: str = "") -> AsyncGenerator[SocketStream, None]:
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(
                sent.replace("HOST", f"Host: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\n").encode()
            )
            yield stream


@asynccontextmanager
async def guarded(
    *, max_requests: int = 64, tokens: Tokens | None = None, content: bytes = b"", **limits: Any
) -> AsyncGenerator[Guarded, None]:
    go, held = anyio.Event(), [0]

    async def length(request: Request) -> Response:
        return as_response({"length": len(await request.body())})

    async def wait(request: Request) -> Response:
        held[0] += 1
        await go.wait()
        return as_response({})

    async def large(request: Request) -> Response:
        return Response(content)

    async def stream(request: Request) -> Response:
        return EventSourceResponse(itertools.repeat(content[:100_000]), send_timeout=0.2)

    endpoints = {
        "/length": {"POST": length, "GET": length},
        "/held": {"GET": wait},
        "/large": {"GET": large},
        "/stream": {"GET": stream},
    }
    app = Starlette(routes=[Route(path, Resource(verbs)) for path, verbs in endpoints.items()])
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    entrance = Entrance(tokens or Tokens(TOKEN), [f"127.0.0.1:{port}"], [])
    async with (
        served(Guard(app, entrance, **limits), listening, max_requests=max_requests),
        client_of(f"http://127.0.0.1:{port}") as http,
    ):
        try:
            yield Guarded(port, http, go, held)
        finally:
            go.set()


async def ends(stream: SocketStream) -> bytes:
    """Return what comes until the server closes the connection."""
    received = b""
    with anyio.fail_after(LIMIT_S):
        try:
            while True:
                received += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return received


async def drip(stream: SocketStream, piece: bytes) -> bytes:
    """Send a byte at a time until the server closes the connection, and return what it said."""
    received = b""

    async def send() -> None:
        try:
            while True:
                await stream.send(piece)
                await anyio.sleep(0.005)
        except anyio.BrokenResourceError:
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        received = await ends(stream)
        tasks.cancel_scope.cancel()
    return received


@pytest.mark.parametrize(
    ("sent", "piece", "status"),
    [
        ("", b"G", b""),
        ("GET /length HTTP/1.1\r\nHOST", b"X-A: b\r\n", b""),
        ("POST /length HTTP/1.1\r\nHOSTContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n", b"x", b"408"),
        (
            "POST /length HTTP/1.1\r\nHOSTContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1\r\nx\r\n",
            b"408",
        ),
        ("POST /nowhere HTTP/1.1\r\nHOSTContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n", b"x", b"404"),
        ("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n", b"x", b"421"),
    ],
    ids=["nothing", "head", "body", "chunks", "unread body", "refused body"],
)
async def test_request_that_comes_byte_by_byte_is_ended(
    monkeypatch: pytest.MonkeyPatch, sent: str, piece: bytes, status: bytes
) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.2)
    async with guarded(body_s=0.2) as it, it.connected(sent) as stream:
        received = await drip(stream, piece)

        assert (await it.http.get("/length")).status_code == 200
    assert received[9:12] == status


async def test_body_of_no_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.2)
    async with guarded(max_body_bytes=1_000) as it:
        whole = await it.http.post("/length", content=b"x" * 1_000, headers={"Content-Type": "application/json"})
        said = await it.http.post("/length", content=b"x" * 1_001, headers={"Content-Type": "application/json"})
        head = "POST /length HTTP/1.1\r\nHOSTContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with it.connected(head) as stream:
            unsaid = await drip(stream, b"80\r\n" + b"x" * 128 + b"\r\n")

    assert whole.json() == {"length": 1_000}
    assert refusal_in(said)[0] == 413
    assert unsaid[9:12] == b"413"


async def test_large_bodies_are_received_a_few_at_a_time() -> None:
    head = f"POST /length HTTP/1.1\r\nHOST{JSON}Content-Length: 2000000\r\nConnection: close\r\n\r\n"
    large = b"x" * (SMALL_BODY_BYTES + 1)
    async with guarded() as it, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(it.connected(head)) for _ in range(MAX_LARGE_BODIES)]
        for stream in streams:
            await stream.send(large)
        with anyio.fail_after(LIMIT_S):
            while (
                refused := await it.http.post("/length", content=large, headers={"Content-Type": "application/json"})
            ).status_code == 200:
                pass  # the server has not read all of the others yet
        small = await it.http.post("/length", content=b"{}", headers={"Content-Type": "application/json"})
        await streams[0].send(b"x" * (2_000_000 - len(large)))
        received = await ends(streams[0])
        again = await it.http.post("/length", content=large, headers={"Content-Type": "application/json"})

    assert refusal_in(refused)[0] == 503
    assert (small.status_code, again.status_code) == (200, 200)
    assert b'{"length":2000000}' in received


def open_files() -> int:
    """Return how many files this process has open, its ends of connections among them."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_idle_connections_make_room_for_others() -> None:
    async with guarded(max_requests=16) as it, AsyncExitStack() as stack:
        first = await it.http.get("/length")
        own = open_files()
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", it.port))) for _ in range(400)]  # in one go
        answers = [await it.http.get("/length") for _ in range(20)]
        async with client_of(f"http://127.0.0.1:{it.port}") as other:
            new = await other.get("/length")
        left = open_files() - own - len(idle)

    assert {answer.status_code for answer in (first, *answers, new)} == {200}
    assert left < 200


async def test_requests_beyond_the_bound_are_refused() -> None:
    async with guarded(max_requests=8) as it:
        answers = list[int]()

        async def ask() -> None:
            answers.append((await it.http.get("/held")).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
            await until(lambda: len(answers) == 12)
            it.go.set()
        after = await it.http.get("/length")

    assert sorted(answers) == [200] * 8 + [503] * 12
    assert after.status_code == 200


@pytest.mark.parametrize("path", ["/large", "/stream"])
async def test_response_that_nobody_takes_frees_its_place(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.2)
    async with guarded(content=b"x" * 30_000_000, max_requests=1) as it:
        own = open_files()
        async with it.connected(f"GET {path} HTTP/1.1\r\nHOST\r\n"):
            await until(lambda: open_files() == own + 2)
            await until(lambda: open_files() == own + 1)
            after = await it.http.get("/length")

    assert after.status_code == 200


def test_rate_lets_a_burst_through_and_then_its_share() -> None:
    now = [0.0]
    rate = Rate(10, 5, lambda: now[0])

    burst = [rate.takes() for _ in range(6)]
    now[0] = 0.1
    later = [rate.takes() for _ in range(2)]
    now[0] = 1_000.0
    rested = [rate.takes() for _ in range(6)]

    assert burst == rested == [*[True] * 5, False]
    assert later == [True, False]


async def test_rate_of_one_token_is_not_that_of_another() -> None:
    tokens = Tokens(TOKEN, rate=lambda: Rate(1, 3, lambda: 0.0))
    other = tokens.add("s1", only_reads=True)
    async with guarded(tokens=tokens) as it, client_of(f"http://127.0.0.1:{it.port}", other) as one:
        statuses = [(await one.get("/length")).status_code for _ in range(4)]
        own = await it.http.get("/length")

    assert statuses == [200, 200, 200, 429]
    assert own.status_code == 200


async def test_clients_of_one_session_leave_room_for_others() -> None:
    tokens = Tokens(TOKEN)
    other = tokens.add("s1", only_reads=True)
    async with guarded(tokens=tokens, max_requests=200) as it, client_of(f"http://127.0.0.1:{it.port}", other) as one:
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_OF_SESSION):
                tasks.start_soon(one.get, "/held")
            await until(lambda: it.held[0] == MAX_OF_SESSION)
            refused = await one.get("/length")
            own = await it.http.get("/length")
            it.go.set()
        after = await one.get("/length")

    assert refusal_in(refused)[0] == 429
    assert (own.status_code, after.status_code) == (200, 200)


def test_oldest_token_is_forgotten_when_there_are_too_many() -> None:
    tokens = Tokens(TOKEN)

    first, second = (tokens.add("s1", only_reads=False) for _ in range(2))
    for _ in range(MAX_TOKENS - 1):
        tokens.add("s2", only_reads=False)

    assert tokens.grant(first) is None
    assert tokens.grant(second) is not None


async def test_streams_beyond_the_bound_are_refused_until_one_ends() -> None:
    streams = Streams(most=1)
    go = anyio.Event()

    async def lines() -> AsyncGenerator[bytes, None]:
        await go.wait()
        yield b""

    async def receive() -> Any:
        await anyio.sleep_forever()

    async def send(message: Any) -> None:
        pass

    stream = streams.of(EventSourceResponse(lines()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream, {"type": "http", "method": "GET"}, receive, send)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(PanpanError, match="1 streams of events are open"):
            streams.of(EventSourceResponse(lines()))
        go.set()

    assert streams.of(EventSourceResponse(lines())) is not None
