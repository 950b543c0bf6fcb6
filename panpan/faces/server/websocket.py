"""The message bus over a WebSocket: `/v1/bus` for a session that the client names, with the lines of `hub/bus.py`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from anyio import EndOfStream
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from panpan.errors import unwrap_single_exception
from panpan.faces.server.guard import caller_of
from panpan.faces.server.routes import SERVER_TABLE, hub_for
from panpan.hub.client_lines import LineMemory
from panpan.hub.connection import Connection
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.hub.operations.table import Caller

PROTOCOL = "panpan.v1"
"""Subprotocol that the server speaks; a client may ask for it."""


class WebSocketTransport:
    """A WebSocket as a transport: each message is a line."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> bytes:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            raise EndOfStream
        text = message.get("text")
        data: bytes = text.encode("utf-8", "surrogatepass") if text is not None else message.get("bytes") or b""
        return data + b"\n"

    async def send(self, item: bytes) -> None:
        try:
            await self._socket.send_text(item.decode().rstrip("\n"))
        except (WebSocketDisconnect, RuntimeError) as error:  # starlette raises the latter after a close
            raise EndOfStream from error

    async def aclose(self) -> None:
        if self._socket.application_state is not WebSocketState.DISCONNECTED:
            with suppress(WebSocketDisconnect):  # the client was faster
                await self._socket.close()


class _Sessions:
    """The sessions of the server, for clients of the bus."""

    def __init__(self, sessions: OpenSessions) -> None:
        self._sessions = sessions

    @property
    def operations(self) -> Sequence[str]:
        return tuple(SERVER_TABLE.operations)

    async def call(self, name: str, caller: Caller, params: object) -> Any:
        return await SERVER_TABLE.call(name, self._sessions, caller, params, None)

    async def find(self, session_id: str, caller: Caller) -> Hub:
        return await hub_for(self._sessions, caller, session_id)


class BusEndpoint:
    """Serves clients of the bus.

    Args:
        sessions: The sessions of the server.
    """

    def __init__(self, sessions: OpenSessions) -> None:
        self._server = _Sessions(sessions)
        self._memory = LineMemory()
        self._numbers = count(1)

    async def serve(self, socket: WebSocket) -> None:
        """Serve one client until it leaves."""
        caller = replace(caller_of(socket), name=f"socket {next(self._numbers)}")
        wanted = socket.scope.get("subprotocols") or ()
        await socket.accept(PROTOCOL if PROTOCOL in wanted else None)
        transport = WebSocketTransport(socket)
        with unwrap_single_exception(), self._memory.lines() as lines:
            await Connection(transport, lines, caller, server=self._server).serve()
        await transport.aclose()
