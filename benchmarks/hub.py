"""A session with many clients: the cost of an event for each, of a client that stopped reading, and of the hop.

The clients read in another process, whose time does not count. The model is a fake that answers at once, so that only
the work of the session and its hub is left.
"""

import gc
import resource
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from benchmarks.figure import Figure, ratio
from panpan.hub.hub import Hub
from panpan.hub.sharing import shared, socket_of
from panpan.types.events import ModelEvent, ReplyStarted, TextDelta
from panpan.types.llm import ModelRequest
from panpan.types.messages import UserMessage
from tests.fakes.hub import hub_of
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in

TITLE = "a session with many clients"

CLIENTS = 100
_DELTAS = 2_000
_STOPPED_DELTAS = 50_000
_TURNS = 200
_SESSION = "s1"

_READERS = """
import selectors, socket, sys
path, count, is_stopped = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "stopped"
selector = selectors.DefaultSelector()
for number in range(count):
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    one.sendall(b'{"type":"request","id":1,"method":"session.initialize","params":{"client":"bench"}}\\n')
    one.recv(1 << 16)
    selector.register(one, selectors.EVENT_READ)
print("ready", flush=True)
if is_stopped:
    sys.stdin.read()
while True:
    for key, _ in selector.select():
        if not key.fileobj.recv(1 << 20):
            sys.exit()
"""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    alone = [anyio.run(_cpu_s, 0) for _ in range(runs)]
    shared_by_all = [anyio.run(_cpu_s, CLIENTS) for _ in range(runs)]
    each = [(many - one) / _DELTAS / CLIENTS * 1e6 for many, one in zip(shared_by_all, alone, strict=True)]
    yield Figure(f"an event for each of {CLIENTS} clients", "µs", each, at_most=30)
    grown = [anyio.run(_grown_mb) for _ in range(runs)]
    yield Figure(f"memory for a client that stopped reading, {_STOPPED_DELTAS:,} deltas", "MB", grown, at_most=4)
    direct, hop = zip(*(anyio.run(_first_event_ms) for _ in range(runs)), strict=True)
    beside = Figure("a prompt to its first event, from the session itself", "ms", direct)
    ours = Figure("the same through the hub", "ms", hop)
    yield from (beside, ours, ratio("the one as a multiple of the other", ours, beside))


class Streaming(ScriptedLLM):
    """Answers with `deltas` deltas."""

    def __init__(self, deltas: int) -> None:
        super().__init__(*[say("done")] * (2 * _TURNS + 2))
        self._deltas = deltas

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().stream(request):
            yield event
            if isinstance(event, TextDelta):
                for number in range(self._deltas):
                    yield TextDelta(0, "word ")
                    if not number % 20:
                        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def _session(deltas: int) -> AsyncGenerator[tuple[Hub, Path], None]:
    with TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        session, run = session_in(work, Streaming(deltas), warn=lambda text: None), Path(folder) / "run"
        async with hub_of(session) as hub, shared(hub, run, lambda text: None):
            yield hub, socket_of(run, _SESSION)


@asynccontextmanager
async def _readers(path: Path, count: int, how: str = "reading") -> AsyncGenerator[None, None]:
    if not count:
        yield
        return
    argv = [sys.executable, "-c", _READERS, str(path), str(count), how]
    async with await anyio.open_process(argv) as process:
        try:
            assert process.stdout is not None
            await process.stdout.receive()
            yield
        finally:
            process.kill()


async def _turn(hub: Hub) -> None:
    await hub.submit("go")
    await hub.idle()


async def _cpu_s(clients: int) -> float:
    """Return processor time for a turn of so many deltas, with the clients reading all of it."""
    async with _session(_DELTAS) as (hub, path), _readers(path, clients):
        begin = resource.getrusage(resource.RUSAGE_SELF)
        await _turn(hub)
        await anyio.wait_all_tasks_blocked()
        end = resource.getrusage(resource.RUSAGE_SELF)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


async def _grown_mb() -> float:
    """Return the memory that a turn takes more with a client that stopped reading than without one."""
    grown = []
    for clients in (0, 1):
        async with _session(_STOPPED_DELTAS) as (hub, path), _readers(path, clients, "stopped"):
            tracemalloc.start()
            await _turn(hub)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] / 1e6)
            tracemalloc.stop()
    return grown[1] - grown[0]


async def _first_event_ms() -> tuple[float, float]:
    """Return milliseconds from a prompt to the first event of its turn: without the hub, and through it."""
    async with _session(0) as (hub, _):
        direct = 0.0
        for _number in range(_TURNS):
            begin = perf_counter()
            async for event in hub.session.send(UserMessage.of("go")):
                if isinstance(event, ReplyStarted):
                    direct += perf_counter() - begin
        through = 0.0
        for _number in range(_TURNS):
            reader = hub.read()
            begin = perf_counter()
            await hub.submit("go")
            while not any(isinstance(one.event, ReplyStarted) for one in await reader.take()):
                pass
            through += perf_counter() - begin
            await hub.idle()
    return direct / _TURNS * 1000, through / _TURNS * 1000
