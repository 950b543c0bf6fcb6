"""The message bus carries requests, responses and events over any transport, and nothing waits for an end that left."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.errors import PanpanError
from panpan.hub.bus import BusClosedError, MessageBus, Transport, direct_pair
from panpan.hub.client_lines import ClientLines, LineMemory
from panpan.hub.connection import Connection
from panpan.hub.events import TurnBegan
from panpan.hub.operations.table import Caller
from panpan.hub.remote import RemoteSession
from panpan.hub.wire import Line, line_of
from tests.faces.terminal.work_fixtures import HeldLLM
from tests.fakes.hub import hub_of
from tests.fakes.scripted_llm import say
from tests.fakes.session import session_in


def bus_at(transport: Transport, answer: Any = None) -> MessageBus:
    return MessageBus(transport, ClientLines(LineMemory()), answer)


@asynccontextmanager
async def ends(answer: Callable[[MessageBus, Line], Any]) -> AsyncGenerator[tuple[MessageBus, MessageBus], None]:
    """Run two ends; the second answers."""
    first, second = direct_pair()
    buses: list[MessageBus] = []

    async def answered(line: Line) -> None:
        await answer(buses[0], line)

    buses.append(bus_at(second, answered))
    one = bus_at(first)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        tasks.start_soon(buses[0].run)
        yield one, buses[0]
        await first.aclose()
        await second.aclose()


async def echo(bus: MessageBus, line: Line) -> None:
    await bus.respond(line["id"], result=line["params"])


async def refuse(bus: MessageBus, line: Line) -> None:
    await bus.respond(line["id"], error="no; ask later")


async def ignore(bus: MessageBus, line: Line) -> None:
    pass


async def test_request_gets_the_result_of_its_own_response() -> None:
    async with ends(echo) as (one, _), anyio.create_task_group() as tasks:
        results: dict[int, Any] = {}

        async def ask(number: int) -> None:
            results[number] = await one.request("echo", number=number)

        for number in range(20):
            tasks.start_soon(ask, number)

    assert results == {number: {"number": number} for number in range(20)}


async def test_request_that_is_refused_raises_the_sentence() -> None:
    async with ends(refuse) as (one, _):
        with pytest.raises(PanpanError, match="no; ask later"):
            await one.request("do")


async def test_request_without_an_answer_ends_after_its_time() -> None:
    async with ends(ignore) as (one, _):
        with pytest.raises(PanpanError, match=r"did not answer do within 0\.01 s"):
            await one.request("do", 0.01)

        assert one._waiting == {}


async def test_requests_end_when_the_transport_does() -> None:
    first, second = direct_pair()
    one, errors = bus_at(first), list[str]()

    async def ask() -> None:
        with pytest.raises(BusClosedError) as caught:
            await one.request("do", None)
        errors.append(str(caught.value))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await second.aclose()
    await first.aclose()

    with pytest.raises(BusClosedError):
        await one.request("again")
    assert errors == ["the other end has left"]
    assert one._waiting == {}


async def test_every_listener_gets_each_event_in_both_directions() -> None:
    heard: list[tuple[str, str]] = []

    def listener(name: str) -> Any:
        async def hear(line: Line) -> None:
            heard.append((name, line["event"]))

        return hear

    async with ends(echo) as (one, other):
        with one.on_event(listener("a")), one.on_event(listener("b")), other.on_event(listener("c")):
            await other.emit("changed", {"x": 1})
            await one.emit("seen", None)
            await one.request("echo")  # is answered behind the events
        await other.emit("later", None)
        await one.request("echo")

    assert sorted(heard) == [("a", "changed"), ("b", "changed"), ("c", "seen")]


@pytest.mark.parametrize(
    "line", [b"nonsense\n", b"[]\n", b'{"type":"response","id":99,"result":1}\n', b'{"type":"?"}\n']
)
async def test_client_survives_or_ends_with_a_reason(line: bytes) -> None:
    first, second = direct_pair()
    one = bus_at(first)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await second.send(line)
        await second.send(line_of(type="event", id=1, event="later", data={}))
        await second.aclose()
    await first.aclose()

    assert one.reason in ("", "a line is not a JSON object")


@asynccontextmanager
async def directly(connect: Callable[[Transport], Any]) -> AsyncGenerator[RemoteSession, None]:
    ours, theirs = direct_pair()
    remote = RemoteSession(ours)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connect, theirs)
        tasks.start_soon(remote.read)
        yield remote
        await ours.aclose()
    await theirs.aclose()


async def test_session_is_joined_within_the_process(tmp_path: Path) -> None:
    llm = HeldLLM(say("hello"))
    (tmp_path / "work").mkdir()

    async with hub_of(session_in(tmp_path / "work", llm, warn=lambda text: None)) as hub:

        async def connect(transport: Transport) -> None:
            await Connection(transport, ClientLines(LineMemory()), Caller("1"), hub).serve()

        way: AbstractAsyncContextManager[RemoteSession] = directly(connect)
        async with way as remote:
            joined = await remote.join("window", answers=True)
            await remote.send("go", "queue")
            llm.let_go(1)
            with anyio.fail_after(20):
                await hub.idle()
            began = [one.event for one in await remote.take() if isinstance(one.event, TurnBegan)]

    assert (joined.client, began[0].client) == ("window 1", "window 1")


async def test_client_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with hub_of(session_in(tmp_path / "work", HeldLLM(), warn=lambda text: None)) as hub:

        async def connect(transport: Transport) -> None:
            caller = Caller("1", only_reads=True)
            await Connection(transport, ClientLines(LineMemory()), caller, hub).serve()

        async with directly(connect) as remote:
            await remote.join("window", answers=True)
            with pytest.raises(PanpanError, match="this access only reads"):
                await remote.send("go", "queue")
            clients = list(hub.questions._clients)

    assert clients == []


def test_line_is_json_on_one_line() -> None:
    line = line_of(type="event", id=1, event="x", data="a\nb")

    assert line.count(b"\n") == 1
    assert json.loads(line)["data"] == "a\nb"
