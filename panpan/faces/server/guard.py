"""The guard before every request: who may ask, from where, how much and how often.

The rule: a web page of somebody else gets no answer that it can read, and causes nothing. So a request needs a token in
a header, which no page can send unasked, an own host name, which no rebound name has, and JSON, which no form sends.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from panpan.hub.operations.table import Caller
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MAX_BODY_BYTES = 32_000_000
"""Most bytes of a request; a prompt with pictures stays below."""
MAX_TOKENS = 1_000
"""Most tokens for single sessions."""
MAX_PER_SECOND = 200.0
"""Requests of one second, on average, over all clients of a token."""
BURST = 400.0
"""Requests that may come at once."""
TOKEN_BYTES = 32
"""Random bytes of a token."""
CLIENT_HEADER = "x-panpan-client"
"""Header with the name of a client, which other clients see."""
_MAX_NAME_CHARS = 100
_OPEN_PATHS = ("/", "/page/")
"""The page itself, which has no secrets."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights of a token."""

    only_session: str | None = None
    """Session that it is for; None for all."""
    only_reads: bool = False


class Tokens:
    """Tokens of a server: its own, and those for single sessions.

    Args:
        token: Token of the server; None if every request comes from the user, as over a private socket.
        only_reads: True if nothing may be changed with any token.
    """

    def __init__(self, token: str | None, *, only_reads: bool = False) -> None:
        self._token = token
        self._only_reads = only_reads
        self._of_sessions: dict[str, Grant] = {}

    def add(self, session_id: str, *, only_reads: bool) -> str:
        """Return a new token for one session; the oldest is forgotten if there are too many."""
        while len(self._of_sessions) >= MAX_TOKENS:
            del self._of_sessions[next(iter(self._of_sessions))]
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._of_sessions[token] = Grant(session_id, only_reads or self._only_reads)
        return token

    def grant(self, given: str | None) -> Grant | None:
        """Return the rights of a token; None if it is none of ours."""
        if self._token is None:
            return Grant(only_reads=self._only_reads)
        if given is None:
            return None
        sent = given.encode()
        if compare_digest(sent, self._token.encode()):
            return Grant(only_reads=self._only_reads)
        return next((one for token, one in self._of_sessions.items() if compare_digest(sent, token.encode())), None)


class Rate:
    """Limits requests: so many at once, and so many a second after that.

    Args:
        per_second: Requests of one second.
        burst: Requests at once.
        clock: Returns seconds that only ever grow.
    """

    def __init__(
        self, per_second: float = MAX_PER_SECOND, burst: float = BURST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._left, self._at = burst, clock()

    def takes(self) -> bool:
        """Return True if one more request is within the limit, and count it."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


@dataclass(frozen=True, slots=True)
class Entrance:
    """The conditions of a request."""

    tokens: Tokens
    names: Sequence[str] | None
    """Hosts with ports by which clients may call the server; None for any, as over a private socket."""
    origins: Sequence[str]
    """Origins of the server's own page."""


class Guard:
    """Refuses requests before anything else sees them.

    Args:
        app: The application.
        entrance: The conditions.
        note: Gets a line for each request, without what is secret: method, path and status.
        rate: Limits requests.
        max_body_bytes: Most bytes of a request's body.
    """

    def __init__(
        self,
        app: ASGIApp,
        entrance: Entrance,
        note: Callable[[str], None] = lambda _: None,
        rate: Rate | None = None,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._app = app
        self._entrance = entrance
        self._note = note
        self._rate = rate or Rate()
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = _Head(scope)
        refusal = self._refusal(request)
        if refusal is None and self._grant(request) is not None:
            scope.setdefault("state", {})["caller"] = self._caller(request)
        seen = _Counted(receive, self._max_body_bytes)

        async def sent(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                self._note(f"{request.method} {clean_line(request.path)[:300]} {message['status']}")
            await send(message)

        if refusal is None:
            await self._app(scope, seen, sent)
        elif scope["type"] == "websocket":
            await sent({"type": "websocket.close", "code": 1008})
        else:
            await refused(*refusal)(scope, receive, sent)

    def _grant(self, request: "_Head") -> Grant | None:
        return self._entrance.tokens.grant(request.token)

    def _caller(self, request: "_Head") -> Caller:
        grant = self._grant(request)
        assert grant is not None
        return Caller(request.client, grant.only_session, grant.only_reads)

    def _refusal(self, request: "_Head") -> tuple[int, str] | None:
        """Return the status and the reason why a request is refused; None if it is let in."""
        entrance = self._entrance
        if entrance.names is not None and request.header("host") not in entrance.names:
            return 421, "this server has another name; call it by the address that it has printed"
        origin = request.header("origin")
        if origin is not None and origin not in entrance.origins:
            return 403, "another site's page may not use this server"
        if request.is_open:
            return None
        if self._grant(request) is None:
            return 401, "a token is needed, in the header Authorization: Bearer TOKEN"
        if not self._rate.takes():
            return 429, f"more than {MAX_PER_SECOND:.0f} requests a second; wait a little"
        if request.has_body and not request.is_json:
            return 415, "send JSON, with the header Content-Type: application/json"
        if request.length > self._max_body_bytes:
            return 413, f"a request may have {self._max_body_bytes:,} bytes; send it in parts"
        return None


class _Head:
    """The head of a request, as far as the guard looks at it."""

    def __init__(self, scope: Scope) -> None:
        self._headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self.method: str = scope.get("method", "WEBSOCKET")
        self.path: str = scope["path"]

    def header(self, name: str) -> str | None:
        value = self._headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    @property
    def is_open(self) -> bool:
        return self.method in ("GET", "HEAD") and (self.path == _OPEN_PATHS[0] or self.path.startswith(_OPEN_PATHS[1]))

    @property
    def token(self) -> str | None:
        scheme, _, given = (self.header("authorization") or "").partition(" ")
        return given.strip() if scheme.lower() == "bearer" else None

    @property
    def client(self) -> str:
        return clean_line(self.header(CLIENT_HEADER) or "http")[:_MAX_NAME_CHARS]

    @property
    def length(self) -> int:
        given = self.header("content-length") or "0"
        return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else 1 << 60

    @property
    def has_body(self) -> bool:
        return self.length > 0 or self._headers.get(b"transfer-encoding") is not None

    @property
    def is_json(self) -> bool:
        return (self.header("content-type") or "").partition(";")[0].strip().lower() == "application/json"


class BodyTooLongError(Exception):
    """A body without a length has turned out to be too long."""


class _Counted:
    """Receives a body, and no more of it than may come."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise BodyTooLongError
        return message


def caller_of(request: Request) -> Caller:
    """Return the caller of a request that was let in."""
    caller: Caller = request.state.caller
    return caller


def refused(status: int, reason: str) -> JSONResponse:
    """Return the response to a request that cannot be fulfilled."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": {"status": status, "message": reason}}, status, headers)
