"""The application: the guard, the operations, the events, and the page."""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from panpan.faces.server.event_stream import EventLines, Streams, event_stream, stream_of_all
from panpan.faces.server.guard import Entrance, Guard, as_response, caller_of, refused
from panpan.faces.server.openapi import document
from panpan.faces.server.opencode.addresses import opencode_routes
from panpan.faces.server.routes import Resource, hub_for, params_of, routes_of
from panpan.faces.server.websocket import BusEndpoint
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.hub.operations.table import ForbiddenError, Params
from panpan.hub.wire import from_json


class EventsParams(Params):
    """A place in the events of a session."""

    epoch: str = Field(default="", max_length=100)
    """Epoch of the number; empty for the present one."""
    after: int | None = Field(default=None, ge=0)
    """Number of the last event that the client has; None to begin with the next event."""


class TokenParams(Params):
    """A token for one session."""

    only_reads: bool = False


class ServerApp:
    """Answers requests over HTTP.

    Args:
        sessions: The sessions of the server.
        entrance: The conditions of a request.
        further: Routes beside those of the operations, such as those of the page.
        note: Gets a line for each request.
    """

    def __init__(
        self,
        sessions: OpenSessions,
        entrance: Entrance,
        further: Sequence[BaseRoute] = (),
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._sessions = sessions
        self._entrance = entrance
        self._lines: WeakKeyDictionary[Hub, EventLines] = WeakKeyDictionary()
        self._streams = Streams()
        routes = [
            Route("/doc", Resource({"GET": self._document})),
            Route("/v1/events", Resource({"GET": self._all_events})),
            Route("/v1/sessions/{session}/events", Resource({"GET": self._events})),
            Route("/v1/sessions/{session}/tokens", Resource({"POST": self._token})),
            WebSocketRoute("/v1/bus", BusEndpoint(sessions).serve),
            *routes_of(sessions),
            *opencode_routes(sessions, self._streams),
            *further,
            Route("/{path:path}", refused(404, "there is no such address; /doc lists them")),
        ]
        self.asgi: ASGIApp = Guard(Starlette(routes=routes), entrance, note)

    async def _document(self, request: Request) -> Response:
        return as_response(document())

    async def _events(self, request: Request) -> Response:
        given, caller = await params_of(request), caller_of(request)
        session_id = given.pop("session")
        epoch, _, number = request.headers.get("last-event-id", "").rpartition(":")
        if number and "after" not in given:  # a client that comes back by itself
            given |= {"epoch": epoch, "after": number}
        params = from_json(EventsParams, given)
        hub = await hub_for(self._sessions, caller, session_id)
        lines = self._lines.setdefault(hub, EventLines(hub.epoch))
        return self._streams.of(event_stream(hub, lines, caller, epoch=params.epoch, after=params.after))

    async def _all_events(self, request: Request) -> Response:
        if caller_of(request).only_session is not None:
            raise ForbiddenError("this token is for one session; read the events of that one")
        from_json(Params, await params_of(request))
        return self._streams.of(stream_of_all(self._sessions))

    async def _token(self, request: Request) -> Response:
        caller_of(request).require("write", None)
        given = await params_of(request)
        session_id = given.pop("session")
        params = from_json(TokenParams, given)
        await self._sessions.find(session_id)
        return as_response({"token": self._entrance.tokens.add(session_id, only_reads=params.only_reads)})
