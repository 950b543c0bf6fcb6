"""Servers that are spoken to by HTTP, with the library's own server on the loopback: both eras, headers, failures."""

import socket
from pathlib import Path

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, JSONRPCError, JSONRPCResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from panpan.capabilities.mcp.pending_call import PendingCall
from panpan.capabilities.mcp.transport import Mender
from tests.capabilities.mcp.place import Place, call, search
from tests.fakes.mcp_http import config, serving, toy


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


class Watched:
    """Notes the requests of an application, and refuses those without a header."""

    def __init__(self, app: ASGIApp, wanted: str = "") -> None:
        self.headers: list[dict[str, str]] = []
        self._app = app
        self._wanted = wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers)
            if self._wanted and headers.get("authorization") != self._wanted:
                await send({"type": "http.response.start", "status": 403, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)


async def test_tools_of_a_server_on_the_network_are_called(place: Place) -> None:
    async with serving(Watched(toy().streamable_http_app())) as url:
        found, added, drawn, counted = await place.results(
            search("numbers"), call("add", a=2, b=3), call("draw"), call("count"), **config(f"{url}/mcp")
        )

    assert "mcp__toy__add: Add two numbers." in found
    assert added == '<mcp-content source="toy/add">\n5\n</mcp-content>'
    assert "[it returned no text]" in drawn
    assert "counted" in counted


async def test_headers_are_sent_and_a_refusal_is_told(place: Place) -> None:
    app = Watched(toy().streamable_http_app(), "Bearer secret")
    place.env["TOY_TOKEN"] = "secret"

    async with serving(app) as url:
        (found,) = await place.results(
            search("numbers"), **config(f"{url}/mcp", headers={"Authorization": "Bearer ${TOY_TOKEN}"})
        )
        (refused,) = await place.results(search("numbers"), **config(f"{url}/mcp"))

    assert "mcp__toy__add" in found
    assert "No tool fits" in refused
    assert "[the MCP server toy answers: Server returned an error response (HTTP status 403)]" in refused
    assert all(headers["user-agent"].startswith("panpan/") for headers in app.headers)


async def test_server_that_is_not_there_is_told(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    (found,) = await place.results(search(), **config(f"http://127.0.0.1:{port}/mcp"))

    assert "[the MCP server toy cannot be reached: " in found


async def test_older_servers_with_events_are_spoken_to(place: Place) -> None:
    async with serving(Watched(toy().sse_app())) as url:
        _, added = await place.results(search("numbers"), call("add", a=2, b=3), **config(f"{url}/sse", type="sse"))

    assert "5" in added


async def test_call_whose_connection_breaks_is_lost_and_not_given_up() -> None:
    lost, left = PendingCall(), PendingCall()

    async def never() -> CallToolResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with anyio.create_task_group() as group:
        group.start_soon(lost.run, never, str)
        group.start_soon(left.run, never, str)
        await anyio.wait_all_tasks_blocked()
        left.cancel()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    assert str(lost.error) == "the connection to the MCP server broke, and whether the call did anything is not known"
    assert (lost.is_lost, left.is_lost) == (True, False)
    assert str(left.error) == "the call was given up"


@pytest.mark.parametrize(("chars", "is_taken"), [(65_536, True), (65_537, False)])
def test_state_that_a_server_has_us_keep_is_bounded(chars: int, is_taken: bool) -> None:
    result = {"resultType": "input_required", "inputRequests": {}, "requestState": "x" * chars}
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result=result)

    mended = Mender()(SessionMessage(message)).message

    assert isinstance(mended, JSONRPCResponse if is_taken else JSONRPCError)
