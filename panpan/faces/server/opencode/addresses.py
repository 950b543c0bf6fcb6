"""The addresses of the subset: those that work, and those of the SDK that are refused with a sentence."""

from collections.abc import Sequence
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from panpan.faces.server.event_stream import Streams, stream_of_all
from panpan.faces.server.guard import as_response, caller_of
from panpan.faces.server.opencode.asked import Asked, Offered
from panpan.faces.server.opencode.prompt_calls import PROMPT_CALLS
from panpan.faces.server.opencode.session_calls import SESSION_CALLS
from panpan.faces.server.opencode.stream import ToldEvents
from panpan.faces.server.opencode.terminal_calls import TERMINAL_CALLS
from panpan.faces.server.opencode.workspace_calls import WORKSPACE_CALLS
from panpan.faces.server.routes import Endpoint, Resource, params_of
from panpan.hub.open_sessions import OpenSessions
from panpan.types.dataclass import dataclass

OFFERED: Sequence[Offered] = (*SESSION_CALLS, *PROMPT_CALLS, *WORKSPACE_CALLS, *TERMINAL_CALLS)
"""Addresses that work, beside `GET /event`."""

DIRECTORY_HEADER = "x-opencode-directory"
"""Header with the folder of the client, percent-encoded; in GET requests the SDK moves it into the query."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Addresses of the SDK that are not in the subset."""

    verbs: Sequence[str]
    path: str
    why: str
    """Advice on a way that works, or the reason why there is none."""


_FILES = "ask for files by name with GET /find/file"
_KEYS = "keys are kept where panpan runs: panpan login"
_MCP = "MCP servers are set where panpan runs: panpan mcp add"
_NO_SHELLS = "panpan opens no terminals over HTTP"
_OTHER_SCREEN = "a joined terminal has no such view"

REFUSED: Sequence[Refused] = (
    Refused(("POST",), "/session/{id}/revert", "POST /v1/sessions/ID/rewind and /v1/sessions/ID/changes/undo do it"),
    Refused(("POST",), "/session/{id}/unrevert", "POST /v1/sessions/ID/changes/redo brings files back"),
    Refused(("POST",), "/session/{id}/shell", "send a prompt; commands run by the rules of the session"),
    Refused(("POST",), "/session/{id}/summarize", "run the command: POST /session/ID/command with compact"),
    Refused(("POST",), "/session/{id}/init", "send a prompt that asks for AGENTS.md"),
    Refused(("POST", "DELETE"), "/session/{id}/share", "panpan shares nothing"),
    Refused(("DELETE",), "/session/{id}/message/{messageID}", "POST /v1/sessions/ID/rewind takes messages back"),
    Refused(("PATCH", "DELETE"), "/session/{id}/message/{messageID}/part/{partID}", "parts cannot be changed"),
    Refused(("PATCH",), "/config", "settings are changed where panpan runs"),
    Refused(("GET",), "/provider", "GET /config/providers lists the models that can be used"),
    Refused(("GET",), "/provider/auth", _KEYS),
    Refused(("POST",), "/provider/{id}/oauth/{step}", _KEYS),
    Refused(("PUT", "DELETE"), "/auth/{id}", _KEYS),
    Refused(("GET",), "/find", _FILES),
    Refused(("GET",), "/find/symbol", _FILES),
    Refused(("GET",), "/file", _FILES),
    Refused(("GET",), "/command", "GET /v1/sessions/ID lists the commands of a session"),
    Refused(("GET",), "/skill", "skills are commands; GET /v1/sessions/ID lists them"),
    Refused(("GET",), "/lsp", "GET /v1/sessions/ID/config tells the settings"),
    Refused(("GET",), "/formatter", "panpan runs no formatters by itself"),
    Refused(("GET",), "/vcs", "panpan tells nothing about branches over HTTP"),
    Refused(("POST",), "/log", "programs keep their logs themselves"),
    Refused(("GET", "POST"), "/mcp", _MCP),
    Refused(("GET", "POST", "DELETE"), "/mcp/{rest:path}", _MCP),
    Refused(("GET", "POST"), "/pty", _NO_SHELLS),
    Refused(("GET", "POST", "PUT", "DELETE"), "/pty/{rest:path}", _NO_SHELLS),
    Refused(("GET",), "/global/health", "GET /v1/health tells the version"),
    Refused(("GET",), "/global/event", "GET /event has the events of all folders"),
    Refused(("GET", "PATCH", "POST"), "/global/{rest:path}", "panpan has no other instances"),
    Refused(("POST",), "/instance/dispose", "DELETE /session/ID closes a session"),
    Refused(("GET",), "/tui/control/next", "read GET /event"),
    Refused(("POST",), "/tui/control/response", "read GET /event"),
    Refused(("POST",), "/tui/publish", "use /tui/append-prompt, /tui/execute-command and /tui/show-toast"),
    Refused(("POST",), "/tui/{view}", _OTHER_SCREEN),
    Refused(("GET", "POST", "PATCH", "DELETE"), "/experimental/{rest:path}", "panpan has nothing of the kind"),
    Refused(("GET", "POST"), "/sync/{rest:path}", "panpan has nothing of the kind"),
    Refused(("GET", "POST", "PATCH", "DELETE"), "/api/{rest:path}", "panpan's own addresses begin with /v1"),
)

_NAMES = {400: "BadRequest", 403: "ForbiddenError", 404: "NotFoundError", 409: "BusyError"}


def opencode_routes(sessions: OpenSessions, streams: Streams) -> Sequence[Route]:
    """Return the routes of the subset.

    Args:
        sessions: The sessions of the server.
        streams: Counts the streams of events.
    """
    found: dict[str, dict[str, Endpoint]] = {"/event": {"GET": _events(sessions, streams)}}
    for one in OFFERED:
        found.setdefault(one.path, {})[one.verb] = _endpoint(sessions, one)
    for refused in REFUSED:
        for verb in refused.verbs:
            found.setdefault(refused.path, {})[verb] = _refusal(refused)
    return [Route(path, Resource(endpoints, sdk_error)) for path, endpoints in found.items()]


def sdk_error(status: int, reason: str, *, allow: str = "") -> Response:
    """Return an error as the SDK has it."""
    told = {"name": _NAMES.get(status, "UnknownError"), "data": {"message": reason}}
    return as_response(told, status, {"Allow": allow} if allow else None)


def _endpoint(sessions: OpenSessions, offered: Offered) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        caller = caller_of(request)
        if offered.verb != "GET":
            caller.require("write", caller.only_session)  # before its body takes memory
        told = await offered.run(await _asked(sessions, request))
        return Response(status_code=204) if told is None else as_response(told)

    return endpoint


def _events(sessions: OpenSessions, streams: Streams) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        asked = await _asked(sessions, request)
        if asked.folder:
            asked.place()  # refuses one that is not served
        return streams.of(stream_of_all(sessions, ToldEvents(asked.is_wanted)))

    return endpoint


def _refusal(refused: Refused) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        told = f"{request.method} {refused.path} is not in the subset of the SDK that panpan offers; {refused.why}"
        return sdk_error(404, told)

    return endpoint


async def _asked(sessions: OpenSessions, request: Request) -> Asked:
    params = await params_of(request)
    folder = params.pop("directory", None) or unquote(request.headers.get(DIRECTORY_HEADER, ""))
    return Asked(request, sessions, caller_of(request), params, str(folder))
