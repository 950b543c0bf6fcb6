"""The message bus over a WebSocket: the same operations and events as over HTTP, and the same guard."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from panpan.errors import PanpanError
from panpan.hub import connection
from panpan.hub.bus import MessageBus
from panpan.hub.client_lines import ClientLines, LineMemory
from panpan.hub.wire import Line
from tests.capabilities.mcp.place import Place, Use
from tests.faces.server.served import LIMIT_S, TOKEN, Server, served_in

SLEEP: Use = ("Bash", {"command": "sleep 86400.78", "description": "Wait"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class ClientTransport:
    """The client's end of a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def receive(self) -> bytes:
        try:
            return f"{await self._socket.recv()}\n".encode()
        except ConnectionClosed as error:
            raise anyio.EndOfStream from error

    async def send(self, item: bytes) -> None:
        try:
            await self._socket.send(item.decode())
        except ConnectionClosed as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        await self._socket.close()


def opened(it: Server, token: str = TOKEN, name: str = "127.0.0.1", **headers: str) -> Any:
    fields = {"Authorization": f"Bearer {token}", **headers}
    return connect(f"ws://{name}:{it.port}/v1/bus", host="127.0.0.1", additional_headers=fields, proxy=None)


@asynccontextmanager
async def bus(it: Server, token: str = TOKEN) -> AsyncGenerator[tuple[MessageBus, list[Line]], None]:
    """Connect, and collect the events."""
    events: list[Line] = []

    async def hear(line: Line) -> None:
        events.append(line)

    async with opened(it, token) as socket, anyio.create_task_group() as tasks:
        one = MessageBus(ClientTransport(socket), ClientLines(LineMemory()))
        with one.on_event(hear), anyio.fail_after(LIMIT_S):
            tasks.start_soon(one.run)
            yield one, events
        tasks.cancel_scope.cancel()


def initialize(session: str) -> str:
    """Return the line that joins a session."""
    params = {"client": "x", "session": session}
    return json.dumps({"type": "request", "id": 1, "method": "session.initialize", "params": params})


async def test_session_is_opened_joined_and_asked(place: Place) -> None:
    async with served_in(place, "hello") as it, bus(it) as (one, events):
        opened_session = await one.request("sessions.open")
        session = opened_session["session"]["id"]
        joined = await one.request("session.initialize", client="program", answers=True, session=session)
        sent = await one.request("session.send", parts=[{"type": "text", "text": "go"}])
        status = await one.request("session.wait")
        messages = await one.request("session.messages")
        await one.request("status.get")  # behind the events
        listed = await one.request("sessions.list")
        over_http = await it.call("GET", f"sessions/{session}/messages")

    assert joined["client"] == "program socket 1"
    assert status["activity"] == "idle"
    assert messages == over_http
    assert [one["session" if "session" in one else "id"] for one in listed["sessions"]] == [session]
    began = next(line for line in events if line["event"] == "turn_began")
    assert (began["data"]["prompt"]["uuid"], began["data"]["client"]) == (sent["message"], "program socket 1")


async def test_requests_before_a_session_is_named_are_refused(place: Place) -> None:
    async with served_in(place) as it, bus(it) as (one, _):
        refusals = []
        for method, params in (
            ("session.send", {"parts": [{"type": "text", "text": "go"}]}),
            ("session.initialize", {"client": "x", "session": "nobody"}),
            ("explode", {}),
        ):
            with pytest.raises(Exception, match=r".") as caught:
                await one.request(method, **params)
            refusals.append(str(caught.value))

    assert refusals[0] == "send session.initialize first"
    assert "there is no session 'nobody'" in refusals[1]
    assert refusals[2].startswith("there is no method 'explode'; these are: session.get")


async def test_token_of_a_session_reaches_no_other(place: Place) -> None:
    async with served_in(place) as it:
        mine, other = await it.open(), await it.open()
        async with bus(it, await it.token(mine, only_reads=True)) as (one, _):
            refusals = []
            for method, params in (
                ("sessions.list", {}),
                ("session.initialize", {"client": "x", "session": other}),
            ):
                with pytest.raises(Exception, match="this token is for one session"):
                    await one.request(method, **params)
                refusals.append(method)
            await one.request("session.initialize", client="x", session=mine)
            with pytest.raises(Exception, match="this access only reads"):
                await one.request("session.cancel")

    assert len(refusals) == 2


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("wrong", {}, 401),
        (TOKEN, {"Origin": "http://evil.example"}, 403),
        (TOKEN, {"name": "evil.example"}, 421),
    ],
)
async def test_guard_refuses_the_upgrade(place: Place, token: str, headers: dict[str, str], status: int) -> None:
    async with served_in(place) as it:
        with pytest.raises(InvalidStatus) as caught:
            async with opened(it, token, **headers):
                pass

    assert caught.value.response.status_code == status


async def test_nonsense_is_told_and_the_connection_goes_on(place: Place) -> None:
    async with served_in(place) as it, opened(it) as socket:
        answers = []
        for message in ("nonsense", "[1]", '{"type":"event"}', b"\xff\xfe"):
            await socket.send(message)
            answers.append(json.loads(await socket.recv()).get("error", ""))
        await socket.send('{"type":"request","id":1,"method":"health.get"}')
        health = json.loads(await socket.recv())

    assert answers[0] == "a line is not a JSON object"
    assert all(answers)
    assert health["result"]["open_sessions"] == 0


async def test_client_that_dies_has_left(place: Place) -> None:
    async with served_in(place) as it:
        session = await it.open()
        async with it.events(session) as events, opened(it) as socket:
            await socket.send(initialize(session))
            here = (await events.until("client_changed"))[-1][2]
            socket.transport.abort()
            gone = (await events.until("client_changed"))[-1][2]

    assert (here, gone) == tuple({"client": "x socket 1", "is_here": is_here} for is_here in (True, False))


async def test_client_of_a_session_that_is_closed_is_told_so(place: Place) -> None:
    async with served_in(place) as it, opened(it) as socket:
        session = await it.open()
        await socket.send(initialize(session))
        await it.call("DELETE", f"sessions/{session}")
        with anyio.fail_after(LIMIT_S):
            lines = [json.loads(line) async for line in socket]

    told = lines[-1]
    assert (told["type"], told["id"], told["error"]) == ("response", "", "the session is closed")


async def test_requests_beyond_the_bound_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_RUNNING", 2)
    async with served_in(place, SLEEP, permission__allow=["Bash(sleep *)"]) as it:
        session = await it.open()
        await it.send(session)
        async with bus(it) as (one, _), anyio.create_task_group() as tasks:
            await one.request("session.initialize", client="x", session=session)
            for _ in range(2):
                tasks.start_soon(one.request, "session.wait")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(PanpanError, match="2 requests of yours run already; wait for their responses"):
                while True:  # until both waits have arrived
                    await one.request("status.get")
            await one.request("session.send", parts=[{"type": "text", "text": "go"}])
            await it.call("POST", f"sessions/{session}/interrupt")
            tasks.cancel_scope.cancel()
