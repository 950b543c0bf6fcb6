"""The guard before every request: who may ask, from where, how much and how often.

The rule: a web page of somebody else gets no answer that it can read, and causes nothing. So a request needs a token in
a header, which no page can send unasked, an own host name, which no rebound name has, and JSON, which no form sends.
"""

import json
import re
import secrets
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from hmac import compare_digest

import anyio
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from panpan.hub.operations.table import Caller
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MAX_BODY_BYTES = 32_000_000
"""Most bytes of a request; a prompt with pictures stays below."""
BODY_S = 120.0
"""Seconds that a request has for its whole body."""
SMALL_BODY_BYTES = 500_000
"""Most bytes of a request that counts as a small one; only a prompt with pictures is larger."""
MAX_LARGE_BODIES = 4
"""Most large requests that are received at the same time."""
MAX_OF_SESSION = 64
"""Most requests and streams at the same time of clients that have a token for one session."""
MAX_TOKENS = 1_000
"""Most tokens for single sessions."""
MAX_PER_SECOND = 200.0
"""Requests of one second, on average, of all clients with the same token."""
BURST = 400.0
"""Requests that may come at once."""
TOKEN_BYTES = 32
"""Random bytes of a token."""
CLIENT_HEADER = "x-panpan-client"
"""Header with the name of a client, which other clients see."""
_BROWSER_HEADER = "sec-fetch-site"
"""Header of every browser. One keeps a password and sends it for other pages, too, so that basic authentication is for
programs alone."""
_MAX_NAME_CHARS = 100
_OF_CONNECTION = re.compile(r" \d+$")
"""End of names that the clients of sockets get; no other client may have one."""
_OPEN_PATHS = ("/", "/page/")
"""The page itself, which has no secrets."""


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
class Grant:
    """Rights of a token."""

    only_session: str | None = None
    """Session that it is for; None for all."""
    only_reads: bool = False
    rate: Rate = field(default_factory=Rate, compare=False)
    """Limit of its requests, which others do not use up."""


class Tokens:
    """Tokens of a server: its own, and those for single sessions.

    Args:
        token: Token of the server; None if every request comes from the user, as over a private socket.
        only_reads: True if nothing may be changed with any token.
        rate: Makes the limit of a token.
    """

    def __init__(self, token: str | None, *, only_reads: bool = False, rate: Callable[[], Rate] = Rate) -> None:
        self._token = token
        self._rate = rate
        self._of_all = Grant(only_reads=only_reads, rate=rate())
        self._of_sessions: dict[str, Grant] = {}

    def add(self, session_id: str, *, only_reads: bool) -> str:
        """Return a new token for one session; the oldest is forgotten if there are too many."""
        while len(self._of_sessions) >= MAX_TOKENS:
            del self._of_sessions[next(iter(self._of_sessions))]
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._of_sessions[token] = Grant(session_id, only_reads or self._of_all.only_reads, self._rate())
        return token

    def grant(self, given: str | None) -> Grant | None:
        """Return the rights of a token; None if it is none of ours."""
        if self._token is None:
            return self._of_all
        if given is None:
            return None
        sent = given.encode()
        if compare_digest(sent, self._token.encode()):
            return self._of_all
        return next((one for token, one in self._of_sessions.items() if compare_digest(sent, token.encode())), None)


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
        max_body_bytes: Most bytes of a request's body.
        body_s: Seconds for it.
    """

    def __init__(
        self,
        app: ASGIApp,
        entrance: Entrance,
        note: Callable[[str], None] = lambda _: None,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        body_s: float = BODY_S,
    ) -> None:
        self._app = app
        self._entrance = entrance
        self._names = None if entrance.names is None else {name.lower() for name in entrance.names}
        self._origins = {origin.lower() for origin in entrance.origins}
        self._note = note
        self._max_body_bytes = max_body_bytes
        self._body_s = body_s
        self._large: set[_Body] = set()
        self._running = Counter[str]()
        """Requests that run, by the session that their token is for."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = _Head(scope)
        grant = self._entrance.tokens.grant(request.token)
        refusal = self._refusal(request, grant)
        body = _Body(receive, self._large, self._max_body_bytes, self._body_s)

        async def sent(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                self._note(f"{request.method} {clean_line(request.path)[:300]} {message['status']}")
            await send(message)

        if refusal is None:
            if grant is not None:
                caller = Caller(request.client, grant.only_session, grant.only_reads)
                scope.setdefault("state", {})["caller"] = caller
            with body, self._counted(grant):
                await self._app(scope, body, sent)
        else:
            await refused(*refusal, ends=request.is_ambiguous)(scope, receive, sent)

    @contextmanager
    def _counted(self, grant: Grant | None) -> Iterator[None]:
        session_id = None if grant is None else grant.only_session
        if session_id is None:
            yield
            return
        self._running[session_id] += 1
        try:
            yield
        finally:
            self._running -= Counter([session_id])  # which also forgets the session if nothing is left

    def _refusal(self, request: "_Head", grant: Grant | None) -> tuple[int, str] | None:
        """Return the status and the reason why a request is refused; None if it is let in."""
        if request.is_ambiguous:
            return 400, "a request has Content-Length or Transfer-Encoding, and not both"
        if self._names is not None and (request.header("host") or "").lower() not in self._names:
            return 421, "this server has another name; call it by the address that it has printed"
        origin = request.header("origin")
        if origin is not None and origin not in self._origins:
            return 403, "another site's page may not use this server"
        if request.is_open:
            return None
        if grant is None:
            return 401, "the token is missing or wrong; send it in the header Authorization: Bearer TOKEN"
        if not grant.rate.takes():
            return 429, f"more than {MAX_PER_SECOND:.0f} requests a second; wait a little"
        if grant.only_session is not None and self._running[grant.only_session] >= MAX_OF_SESSION:
            return 429, f"{MAX_OF_SESSION} requests with tokens for this session run already; end one of them first"
        if request.has_body and not request.is_json:
            return 415, "send JSON, with the header Content-Type: application/json"
        if request.length > self._max_body_bytes:
            return 413, f"a request may have {self._max_body_bytes:,} bytes; send it in parts"
        return None


class _Head:
    """The head of a request, as far as the guard looks at it."""

    def __init__(self, scope: Scope) -> None:
        self._headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:  # one that is there twice is of no form that we take
            self._headers[name] = value if name not in self._headers else b"%b, %b" % (self._headers[name], value)
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
        match scheme.lower():
            case "bearer":
                return given.strip()
            case "basic" if self.header(_BROWSER_HEADER) is None:
                return _password_in(given)
            case _:
                return None

    @property
    def client(self) -> str:
        name = clean_line(self.header(CLIENT_HEADER) or "http")[:_MAX_NAME_CHARS]
        return f"{name} http" if _OF_CONNECTION.search(name) else name

    @property
    def length(self) -> int:
        given = self.header("content-length") or "0"
        return int(given) if given.isascii() and given.isdecimal() and len(given) < 16 else 1 << 60

    @property
    def has_body(self) -> bool:
        return self.length > 0 or self._headers.get(b"transfer-encoding") is not None

    @property
    def is_ambiguous(self) -> bool:
        """True if a proxy may see another end of the request than we do."""
        return b"transfer-encoding" in self._headers and b"content-length" in self._headers

    @property
    def is_json(self) -> bool:
        return (self.header("content-type") or "").partition(";")[0].strip().lower() == "application/json"


def _password_in(credentials: str) -> str | None:
    """Return the password of basic authentication, with any user's name (RFC 7617); None if there is none."""
    try:
        _, colon, password = b64decode(credentials.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return password if colon else None


class BodyError(Exception):
    """A body cannot be received to its end.

    Args:
        status: Status of the response.
        reason: What the client reads.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Body:
    """Receives a body, within bounds of bytes, of time, and of the memory of all bodies. Enter it around the request.

    Args:
        receive: Returns the next message.
        large: Large bodies that are being received.
        most: Most bytes.
        seconds: Seconds for all of it.
    """

    def __init__(self, receive: Receive, large: "set[_Body]", most: int, seconds: float) -> None:
        self._receive = receive
        self._large = large
        self._most = most
        self._size = 0
        self._ends_at = anyio.current_time() + seconds
        self._has_more = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._large.discard(self)

    async def __call__(self) -> Message:
        if not self._has_more:
            return await self._receive()
        with anyio.move_on_at(self._ends_at) as scope:
            message = await self._receive()
        if scope.cancelled_caught:
            raise BodyError(408, "the rest of the request did not come in time; send it again")
        self._has_more = bool(message.get("more_body"))
        self._count(len(message.get("body", b"")))
        return message

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._most:
            raise BodyError(413, "the request is too long; send it in parts")
        if self._size > SMALL_BODY_BYTES and self not in self._large:
            if len(self._large) >= MAX_LARGE_BODIES:
                raise BodyError(503, f"{MAX_LARGE_BODIES} other clients send large requests; send this one again later")
            self._large.add(self)


def caller_of(request: HTTPConnection) -> Caller:
    """Return the caller of a request that was let in."""
    caller: Caller = request.state.caller
    return caller


def refused(status: int, reason: str, *, ends: bool = False, allow: str = "") -> Response:
    """Return the response to a request that cannot be fulfilled.

    Args:
        status: The status.
        reason: A sentence for the user.
        ends: True to close the connection at once, even before the client has read the response.
        allow: Verbs that the address has.
    """
    headers = {
        **({"WWW-Authenticate": "Bearer"} if status == 401 else {}),
        **({"Connection": "close"} if ends else {}),
        **({"Allow": allow} if allow else {}),
    }
    return as_response({"error": {"status": status, "message": reason}}, status, headers)


def as_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON as a response, also where a text has what is no UTF-8; no browser takes it for a page or keeps it."""
    content = json.dumps(value, separators=(",", ":")).encode()
    every = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    return Response(content, status, every, media_type="application/json")
