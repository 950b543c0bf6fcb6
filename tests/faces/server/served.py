"""A server in this process, over real loopback, with clients that speak to it."""

import json
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.abc import SocketStream
from starlette.types import ASGIApp

from panpan.cli_kit.serving import HttpPlace, ServedPlace
from panpan.faces.http_server import served
from panpan.faces.server.app import ServerApp
from panpan.faces.server.serving import ServerPlace
from panpan.faces.session_commands import SessionCommands
from panpan.hub.open_sessions import OpenSessions
from panpan.session.frontend import SessionOptions
from tests.capabilities.mcp.place import Place
from tests.prepared_command import PREPARED

TOKEN = "a-token-of-the-tests-0123456789"
LIMIT_S = 30
"""Seconds after which whatever a test waits for will not come."""


class Events:
    """Server-sent events of a response, as they come."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, str, dict[str, Any]]:
        """Return the id, the name and the data of the next event."""
        fields: dict[str, str] = {}
        with anyio.fail_after(LIMIT_S):
            async for line in self._lines:
                if not line and "data" in fields:
                    return fields.get("id", ""), fields["event"], json.loads(fields["data"])
                name, _, value = line.partition(": ")
                if name:
                    fields[name] = value
        raise anyio.EndOfStream

    async def until(self, name: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the events up to the first one of a name."""
        events = [await self.next()]
        while events[-1][1] != name:
            events.append(await self.next())
        return events


@dataclass
class Server:
    """A server and its sessions."""

    place: Place
    sessions: OpenSessions
    http: httpx2.AsyncClient
    """A client with the token of the server."""
    url: str
    port: int
    app: ServerApp
    log: list[str] = field(default_factory=list)
    """The access log."""

    async def call(self, verb: str, at: str, body: Any = None, **query: Any) -> Any:
        """Ask for something, and return the result."""
        answer = await self.http.request(verb, f"/v1/{at}", json=body, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refusal(self, verb: str, at: str, body: Any = None, **query: Any) -> tuple[int, str]:
        """Ask for something that is refused, and return the status and the reason."""
        return refusal_in(await self.http.request(verb, f"/v1/{at}", json=body, params=query))

    async def open(self, **params: Any) -> str:
        """Open a session, and return its id."""
        return str((await self.call("POST", "sessions", params))["session"]["id"])

    async def send(self, session: str, text: str = "go", **params: Any) -> str:
        """Send a prompt of words, and return the id of its message."""
        body = {"parts": [{"type": "text", "text": text}], **params}
        return str((await self.call("POST", f"sessions/{session}/prompts", body))["message"])

    async def finish(self, session: str) -> Mapping[str, Any]:
        """Wait until no turn runs, and return the status."""
        status: Mapping[str, Any] = await self.call("GET", f"sessions/{session}/wait", timeout_s=LIMIT_S)
        assert status["activity"] == "idle"
        return status

    async def said(self, session: str) -> list[str]:
        """Return the texts of the conversation."""
        messages = await self.call("GET", f"sessions/{session}/messages")
        return [block["text"] for one in messages for block in one.get("content", ()) if block["type"] == "text"]

    async def token(self, session: str, *, only_reads: bool = False) -> str:
        """Return a new token for one session."""
        return str((await self.call("POST", f"sessions/{session}/tokens", {"only_reads": only_reads}))["token"])

    @asynccontextmanager
    async def events(self, session: str, **query: Any) -> AsyncGenerator[Events, None]:
        """Read the events of a session."""
        headers = {"Last-Event-ID": query.pop("last")} if "last" in query else {}
        path = f"/v1/sessions/{session}/events" if session else "/v1/events"
        async with self.http.stream("GET", path, params=query, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Events(response)

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[SocketStream, None]:
        """Open a connection that nothing was sent over."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            yield stream

    async def raw(self, sent: bytes) -> bytes:
        """Send bytes over a connection of their own, and return what comes back until the server closes it."""
        received = b""
        async with self.connected() as stream:
            with anyio.fail_after(LIMIT_S):
                try:
                    await stream.send(sent)
                    while True:
                        received += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return received


def refusal_in(answer: httpx2.Response) -> tuple[int, str]:
    """Return the status and the reason of a refusal."""
    assert answer.status_code >= 400, answer.text
    error = answer.json()["error"]
    assert error["status"] == answer.status_code
    return answer.status_code, error["message"]


def client_of(url: str, token: str | None = TOKEN) -> httpx2.AsyncClient:
    """Return a client with a token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=LIMIT_S, limits=limits, trust_env=False)


@asynccontextmanager
async def served_in(
    place: Place,
    *uses: Any,
    only_reads: bool = False,
    max_requests: int = 256,
    folders: tuple[Path, ...] = (),
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    **overrides: Any,
) -> AsyncGenerator[Server, None]:
    """Serve a project, with a model that makes calls.

    Args:
        place: The project.
        uses: Calls of the model, one a reply, and words that end a turn.
        only_reads: True if nothing may be changed.
        max_requests: Most requests at the same time.
        folders: Folders that are served; the project if there are none.
        around: Puts something around the application.
        overrides: Settings, with two underscores for a dot.
    """
    settings = {"model": place.tape(*uses), "sandbox.mode": "off", "sessions.title": "first-words"}
    settings |= {key.replace("__", "."): value for key, value in overrides.items()}
    options: SessionOptions = {"env": place.env, "overrides": settings}
    http_place = HttpPlace("127.0.0.1", 0, token=TOKEN, variable="PANPAN_SERVER_TOKEN")
    listening, address, entrance = ServerPlace(http_place, only_reads=only_reads).listen()
    served_place = ServedPlace(folders or [place.root], place.env, {})
    log: list[str] = []
    async with OpenSessions(
        served_place, options, lambda env, further: SessionCommands(env, further), place.warnings.append
    ) as sessions:
        app = ServerApp(sessions, entrance, note=log.append)
        async with (
            served(around(app.asgi), listening, max_requests=max_requests, ws="websockets-sansio"),
            client_of(address.rstrip("/")) as http,
        ):
            yield Server(place, sessions, http, address.rstrip("/"), listening.getsockname()[1], app, log)


@contextmanager
def server_process(
    place: Place, *words: str, uses: Sequence[Any] = (), options: Sequence[str] = (), **env: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the real program, with the token of the tests, and yield it and its address.

    Args:
        place: The project.
        words: Words behind `serve`.
        uses: Calls of the model, one a reply, and words that end a turn.
        options: Options before `serve`.
        env: Further environment variables.
    """
    model = () if "ANTHROPIC_API_KEY" in env else ("--model", place.tape(*uses))
    environment = {**place.env, "PANPAN_SERVER_TOKEN": TOKEN, **env}
    process = subprocess.Popen(
        PREPARED.argv(*model, "--sandbox", "off", *options, "serve", *words, env=environment),
        env=environment,
        cwd=place.root,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            yield process, process.stderr.readline().split()[-1].rstrip("/")
        finally:
            process.kill()
