"""The addresses of the server: each is an operation of the one table for all transports."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from panpan.errors import ConfigError, PanpanError, SessionHeldError
from panpan.faces.server.guard import BodyError, as_response, caller_of, refused
from panpan.hub.connection import SESSION_TABLE
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.hub.operations.server import SERVER_OPERATIONS
from panpan.hub.operations.table import BusyError, Caller, ForbiddenError, Need, NotFoundError, Operation, Table
from panpan.hub.wire import WireError
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

log = logging.getLogger(__name__)

Verb = Literal["GET", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Address:
    """Address of an operation. Names in braces are parameters; `session` also says which session is meant."""

    verb: Verb
    path: str
    operation: str


_SESSION = "/v1/sessions/{session}"

SERVER_ADDRESSES: Sequence[Address] = (
    Address("GET", "/v1/health", "health.get"),
    Address("GET", "/v1/projects", "projects.list"),
    Address("GET", "/v1/sessions", "sessions.list"),
    Address("POST", "/v1/sessions", "sessions.open"),
    Address("POST", f"{_SESSION}/fork", "sessions.fork"),
    Address("DELETE", _SESSION, "sessions.close"),
)
SESSION_ADDRESSES: Sequence[Address] = (
    Address("GET", _SESSION, "session.get"),
    Address("PATCH", _SESSION, "session.change"),
    Address("GET", f"{_SESSION}/status", "status.get"),
    Address("GET", f"{_SESSION}/messages", "session.messages"),
    Address("POST", f"{_SESSION}/prompts", "session.send"),
    Address("POST", f"{_SESSION}/commands", "session.command"),
    Address("POST", f"{_SESSION}/terminals", "terminal.run"),
    Address("POST", f"{_SESSION}/interrupt", "session.cancel"),
    Address("POST", f"{_SESSION}/take-back", "session.takeBack"),
    Address("GET", f"{_SESSION}/wait", "session.wait"),
    Address("POST", f"{_SESSION}/rewind", "session.rewind"),
    Address("POST", f"{_SESSION}/retry", "session.retryNow"),
    Address("GET", f"{_SESSION}/context", "session.context"),
    Address("GET", f"{_SESSION}/config", "session.config"),
    Address("GET", f"{_SESSION}/questions", "questions.list"),
    Address("POST", f"{_SESSION}/questions/{{id}}", "session.answer"),
    Address("GET", f"{_SESSION}/questions/{{id}}/answers", "questions.answers"),
    Address("GET", f"{_SESSION}/todos", "todos.list"),
    Address("GET", f"{_SESSION}/tasks", "tasks.list"),
    Address("GET", f"{_SESSION}/tasks/{{task}}/output", "tasks.output"),
    Address("POST", f"{_SESSION}/tasks/{{task}}/stop", "tasks.stop"),
    Address("GET", f"{_SESSION}/models", "models.list"),
    Address("GET", f"{_SESSION}/files", "files.find"),
    Address("GET", f"{_SESSION}/files/content", "files.read"),
    Address("GET", f"{_SESSION}/changes", "changes.list"),
    Address("POST", f"{_SESSION}/changes/undo", "changes.undo"),
    Address("POST", f"{_SESSION}/changes/redo", "changes.redo"),
)

SERVER_TABLE: Table[OpenSessions] = Table(SERVER_OPERATIONS)

STATUS_OF: Mapping[type[PanpanError], int] = {
    NotFoundError: 404,
    ForbiddenError: 403,
    BusyError: 409,
    SessionHeldError: 409,
    WireError: 400,
    ConfigError: 400,
    PanpanError: 422,
}
"""Status of each kind of error; the first one that fits counts."""

Endpoint = Callable[[Request], Awaitable[Response]]


def operation_of(address: Address) -> Operation[Any]:
    """Return the operation of an address."""
    table: Table[Any] = SERVER_TABLE if address in SERVER_ADDRESSES else SESSION_TABLE
    return table.operations[address.operation]


def routes_of(sessions: OpenSessions) -> Sequence[Route]:
    """Return the routes of all operations."""
    found: dict[str, dict[str, Endpoint]] = {}
    for address in SERVER_ADDRESSES:
        endpoint = _endpoint(SERVER_TABLE.operations[address.operation].need, _on_server(sessions, address.operation))
        found.setdefault(address.path, {})[address.verb] = endpoint
    for address in SESSION_ADDRESSES:
        endpoint = _endpoint(SESSION_TABLE.operations[address.operation].need, _on_session(sessions, address.operation))
        found.setdefault(address.path, {})[address.verb] = endpoint
    return [Route(path, Resource(endpoints)) for path, endpoints in found.items()]


class Resource:
    """Answers the verbs of one address, and refuses others, HEAD among them.

    Args:
        endpoints: An endpoint for each verb.
        refuse: Makes the responses to requests that cannot be fulfilled.
    """

    def __init__(self, endpoints: Mapping[str, "Endpoint"], refuse: "Refuse" = refused) -> None:
        self._endpoints = {verb: answered(endpoint, refuse) for verb, endpoint in endpoints.items()}
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        endpoint = self._endpoints.get(request.method)
        if endpoint is None:
            verbs = ", ".join(self._endpoints)
            response = self._refuse(405, f"this address has {verbs} alone; /doc lists all", allow=verbs)
        else:
            response = await endpoint(request)
        await response(scope, receive, send)


def _endpoint(need: Need, call: Callable[[Caller, dict[str, Any]], Awaitable[Any]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        caller = caller_of(request)
        if caller.only_reads and need != "read":
            caller.require(need, caller.only_session)  # before its body takes memory
        return as_response(await call(caller, await params_of(request)))

    return endpoint


def _on_server(sessions: OpenSessions, name: str) -> Callable[[Caller, dict[str, Any]], Awaitable[Any]]:
    async def call(caller: Caller, params: dict[str, Any]) -> Any:
        return await SERVER_TABLE.call(name, sessions, caller, params, None)

    return call


def _on_session(sessions: OpenSessions, name: str) -> Callable[[Caller, dict[str, Any]], Awaitable[Any]]:
    async def call(caller: Caller, params: dict[str, Any]) -> Any:
        session_id = str(params.pop("session", ""))
        hub = await hub_for(sessions, caller, session_id, SESSION_TABLE.operations[name])
        return await SESSION_TABLE.call(name, hub, caller, params, session_id)

    return call


async def hub_for(
    sessions: OpenSessions, caller: Caller, session_id: str, operation: Operation[Hub] | None = None
) -> Hub:
    """Return the hub of a session, which is opened if it is only stored.

    Args:
        sessions: The sessions of the server.
        caller: The client that asks.
        session_id: Id of the session.
        operation: What it wants to do; None to read.

    Raises:
        ForbiddenError: It may not, so that nothing is opened for it.
        NotFoundError: There is no such session.
    """
    caller.require("read" if operation is None else operation.need, session_id)
    return await sessions.find(session_id)


async def params_of(request: Request) -> dict[str, Any]:
    """Return the parameters of a request, from its address and its body.

    Raises:
        WireError: The body is no JSON object, or a parameter is there twice.
    """
    params: dict[str, Any] = {}
    if body := await request.body():
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise WireError("the body is not a JSON object") from error
        if not isinstance(given, dict):
            raise WireError("the body is not a JSON object")
        params = given
    for name, value in [*request.query_params.multi_items(), *request.path_params.items()]:
        if name in params:
            raise WireError(f"the parameter {clean_line(name)[:100]} is given twice")
        params[name] = value
    return params


class Refuse(Protocol):
    """Makes a response from a status and a sentence."""

    def __call__(self, status: int, reason: str, *, allow: str = "") -> Response: ...


def answered(endpoint: Endpoint, refuse: Refuse = refused) -> Endpoint:
    """Return an endpoint that answers errors with their status and a sentence.

    Args:
        endpoint: The endpoint.
        refuse: Makes the response from both.
    """

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except PanpanError as error:
            status = next(status for kind, status in STATUS_OF.items() if isinstance(error, kind))
            return refuse(status, str(error))
        except BodyError as error:
            return refuse(error.status, str(error))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # a bug of ours, which ends one request alone
            log.exception("a request failed")
            return refuse(500, f"an unexpected {type(error).__name__} ended the request; please report it")

    return answer
