"""A server over loopback, and requests as the SDK makes them."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import httpx2

from panpan.hub.open_sessions import OpenSessions
from tests.capabilities.mcp.place import Place, Use
from tests.faces.server.served import served_in

PROMPT = {"parts": [{"type": "text", "text": "go"}]}


class Requests:
    """A client of the SDK, and the server's sessions."""

    def __init__(self, http: httpx2.AsyncClient, sessions: OpenSessions, notes: Sequence[str]) -> None:
        self.http = http
        self.sessions = sessions
        self.notes = notes
        """Lines of the access log."""

    async def ask(self, verb: str, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        """Return what a request is answered, which has to have a status."""
        response = await self.http.request(verb, path, json=body, headers=headers)
        assert response.status_code == status, response.text
        return response.json() if response.content else None

    async def create(self, **body: Any) -> str:
        """Open a session, and return its id."""
        session: str = (await self.ask("POST", "/session", body))["id"]
        return session

    async def error(self, verb: str, path: str, body: Any = None, *, status: int, **headers: str) -> str:
        """Return the sentence of an error with a status."""
        told = await self.ask(verb, path, body, status=status, **headers)
        words: str = told["data"]["message"]
        return words

    @asynccontextmanager
    async def events(self, **headers: str) -> AsyncGenerator["Events", None]:
        """Read the events from now on inside the block."""
        async with self.http.stream("GET", "/event", headers=headers) as response:
            assert response.status_code == 200
            async with aclosing(_events(response)) as source:
                events = Events(source)
                assert (await events.until("server.connected"))["properties"] == {}
                yield events


class Events:
    """Events of a stream."""

    def __init__(self, source: AsyncGenerator[Any, None]) -> None:
        self._source = source
        self.seen: list[Any] = []

    async def until(self, name: str) -> Any:
        """Return the next event of a type."""
        with anyio.fail_after(30):
            async for event in self._source:
                self.seen.append(event)
                if event["type"] == name:
                    return event
        raise AssertionError(f"the stream ended before {name}")

    def of(self, name: str) -> Sequence[Any]:
        """Return the properties of those that were seen, of one type."""
        return [event["properties"] for event in self.seen if event["type"] == name]


async def _events(response: httpx2.Response) -> AsyncGenerator[Any, None]:
    waiting = ""
    async for text in response.aiter_text():
        *chunks, waiting = (waiting + text).split("\n\n")  # as the SDK does it
        for line in [line for chunk in chunks for line in chunk.split("\n")]:
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))


@asynccontextmanager
async def sdk_server(place: Place, *uses: Use | str, only_reads: bool = False) -> AsyncGenerator[Requests, None]:
    """Serve a project, whose model makes these calls, inside the block."""
    async with served_in(place, *uses, only_reads=only_reads) as server:
        yield Requests(server.http, server.sessions, server.log)
