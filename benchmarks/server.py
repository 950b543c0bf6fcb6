"""A session over HTTP with many clients: an event for each, a client that stopped reading, reconnects, and the way.

The clients run in another process, whose time does not count. The model is a fake that answers at once, so that only
the work of the session, its hub and the server is left.
"""

import gc
import resource
import socket
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import cast

import anyio

from benchmarks.figure import Figure
from benchmarks.hub import Streaming
from panpan.faces.http_server import served
from panpan.faces.server.app import ServerApp
from panpan.faces.server.guard import Entrance, Rate, Tokens
from panpan.faces.server.serving import MAX_REQUESTS
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.types.events import ReplyStarted
from panpan.types.messages import UserMessage
from tests.fakes.hub import hub_of
from tests.fakes.session import session_in

TITLE = "a session over HTTP with many clients"

CLIENTS = 100
_DELTAS = 2_000
_STOPPED_DELTAS = 50_000
_RECONNECTS = 10_000
_TURNS = 20
_SESSION = "s1"
_TOKEN = "a token of the benchmark"
_PROMPT = '{"parts": [{"type": "text", "text": "go"}]}'

_CLIENT = """
import selectors, socket, sys
port, count, task = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
head = (
    "GET /v1/sessions/s1/events HTTP/1.1\\r\\n"
    f"Host: 127.0.0.1:{port}\\r\\nAuthorization: Bearer a token of the benchmark\\r\\n\\r\\n"
).encode()

def connected():
    one = socket.create_connection(("127.0.0.1", port))
    one.sendall(head)
    assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return one

sockets = [connected() for _ in range(count)]
selector = selectors.DefaultSelector()
for one in sockets[1:] if task == "one stopped" else sockets:
    selector.register(one, selectors.EVENT_READ)
print("ready", flush=True)
if task == "stopped":
    sys.stdin.read()
if task.isdecimal():
    for number in range(int(task)):
        connected().close()
        if not number % 500:
            print(number, flush=True)
    print("done", flush=True)
while True:
    for key, _ in selector.select():
        if not key.fileobj.recv(1 << 20):
            sys.exit()
"""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    alone = [anyio.run(_cpu_s, 0) for _ in range(runs)]
    with_clients = [anyio.run(_cpu_s, CLIENTS) for _ in range(runs)]
    each = [(many - one) / _DELTAS / CLIENTS * 1e6 for many, one in zip(with_clients, alone, strict=True)]
    yield Figure(f"an event for each of {CLIENTS} clients, one of them stopped", "µs", each, at_most=30)
    grown = [anyio.run(_grown_mb) for _ in range(runs)]
    yield Figure(f"memory for a client that stopped reading, {_STOPPED_DELTAS:,} deltas", "MB", grown, at_most=4)
    left = [anyio.run(_left_mb)]  # takes a minute or two
    yield Figure(f"memory after {_RECONNECTS:,} reconnects beside {CLIENTS} clients", "MB", left, at_most=1)
    direct, over_http = zip(*(anyio.run(_first_event_ms) for _ in range(runs)), strict=True)
    yield Figure("a prompt to its first event, through the hub", "ms", direct)
    more = [one - other for one, other in zip(over_http, direct, strict=True)]
    yield Figure("the same over HTTP, beyond that", "ms", more, at_most=5)


class _OneSession:
    """Sessions of a server that has one."""

    def __init__(self, hub: Hub) -> None:
        self.hubs = {_SESSION: hub}

    async def find(self, session_id: str) -> Hub:
        return self.hubs[session_id]


@asynccontextmanager
async def _session(deltas: int) -> AsyncGenerator[tuple[Hub, int], None]:
    with TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        session = session_in(work, Streaming(deltas), warn=lambda text: None)
        async with hub_of(session) as hub:
            listening = socket.create_server(("127.0.0.1", 0))
            port = listening.getsockname()[1]
            tokens = Tokens(_TOKEN, rate=lambda: Rate(1e9, 1e9))
            entrance = Entrance(tokens, [f"127.0.0.1:{port}"], [])
            app = ServerApp(cast("OpenSessions", _OneSession(hub)), entrance)
            async with served(app.asgi, listening, max_requests=MAX_REQUESTS):
                yield hub, port


@asynccontextmanager
async def _clients(port: int, count: int, task: str = "reading") -> AsyncGenerator[anyio.abc.Process | None, None]:
    if not count:
        yield None
        return
    async with await anyio.open_process([sys.executable, "-c", _CLIENT, str(port), str(count), task]) as process:
        try:
            assert process.stdout is not None
            await process.stdout.receive()
            yield process
        finally:
            process.kill()


async def _turn(hub: Hub) -> None:
    await hub.submit("go")
    await hub.idle()


async def _cpu_s(clients: int) -> float:
    """Return processor time for a turn of so many deltas, with the clients reading all of it, but one."""
    async with _session(_DELTAS) as (hub, port), _clients(port, clients, "one stopped"):
        begin = resource.getrusage(resource.RUSAGE_SELF)
        await _turn(hub)
        await anyio.wait_all_tasks_blocked()
        end = resource.getrusage(resource.RUSAGE_SELF)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


async def _grown_mb() -> float:
    """Return the memory that a turn takes more with a client that stopped reading than without one."""
    grown = []
    for clients in (0, 1):
        async with _session(_STOPPED_DELTAS) as (hub, port), _clients(port, clients, "stopped"):
            tracemalloc.start()
            await _turn(hub)
            await anyio.wait_all_tasks_blocked()
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] / 1e6)
            tracemalloc.stop()
    return grown[1] - grown[0]


async def _left_mb() -> float:
    """Return the memory that is left over from clients that came and went."""
    async with (
        _session(20) as (hub, port),
        _clients(port, 1, "stopped"),
        _clients(port, CLIENTS, str(_RECONNECTS)) as one,
    ):
        assert one is not None
        assert one.stdout is not None
        said = b""
        before = 0.0
        while b"done" not in said:
            said = await one.stdout.receive()
            await hub.submit("go")
            if not before and int(said.split()[-1]) >= 500:  # what is made once is there
                gc.collect()
                tracemalloc.start()
                before = tracemalloc.get_traced_memory()[0]
        await hub.idle()
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    return left / 1e6


async def _first_event_ms() -> tuple[float, float]:
    """Return milliseconds from a prompt to the first event of its turn: through the hub, and over HTTP."""
    async with _session(0) as (hub, port):
        direct = list[float]()
        for _number in range(_TURNS):
            reader = hub.read()
            begin = perf_counter()
            await hub.submit(UserMessage.of("go"))
            while not any(isinstance(one.event, ReplyStarted) for one in await reader.take()):
                pass
            direct.append(perf_counter() - begin)
            await hub.idle()
    async with _session(0) as (hub, port):  # a conversation as short as that one
        head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {_TOKEN}\r\n"
        reading = f"GET /v1/sessions/{_SESSION}/events HTTP/1.1\r\n{head}\r\n".encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(_PROMPT)}\r\n\r\n"
        sending = f"POST /v1/sessions/{_SESSION}/prompts HTTP/1.1\r\n{head}{kind}{_PROMPT}".encode()
        through = list[float]()
        async with (
            await anyio.connect_tcp("127.0.0.1", port) as events,
            await anyio.connect_tcp("127.0.0.1", port) as to,
        ):
            await events.send(reading)
            await events.receive()
            for _number in range(_TURNS):
                begin = perf_counter()
                await to.send(sending)
                received = b""
                while b"event: reply_started" not in received:
                    received += await events.receive()
                through.append(perf_counter() - begin)
                await to.receive()
                await hub.idle()
                while b"event: turn_closed" not in received:
                    received += await events.receive()
    return median(direct) * 1000, median(through) * 1000
