"""The token of a login in each request to a server."""

import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Protocol

import httpx2

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.capabilities.mcp.logins import Challenge, Login, Logins
from panpan.errors import PanpanError

_MAX_SCOPE_CHARS = 100


def silence_library() -> None:
    """Let the library `mcp` log nothing to the screen: it prints text of servers, with their control characters."""
    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    log.propagate = False


class Bearer(httpx2.Auth):
    """Adds the token of a login, and renews it once where it is refused.

    Args:
        entry: The server.
        logins: The logins.
        refused: Told why a request was refused, and whether for want of a login.
    """

    def __init__(self, entry: ServerEntry, logins: Logins, refused: "_Refused") -> None:
        self._url = entry.settings.url or ""
        self._logins = logins
        self._refused = refused
        self._advice = f"log in with: panpan mcp login {entry.name}"

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if _origin(request.url) != _origin(httpx2.URL(self._url)):
            yield request
            return
        problem, login = "", None
        try:
            login = await self._logins.current(self._url)
        except PanpanError as error:  # without a token the server refuses, and only this request fails
            problem = str(error)
        response = yield _with_token(request, login)
        if response.status_code == httpx2.codes.UNAUTHORIZED and login is not None:
            try:
                login = await self._logins.renewed(self._url, login)
            except PanpanError as error:
                problem, login = str(error), None
            if login is not None:
                response = yield _with_token(request, login)
        challenge = Challenge.read(response.headers.get("www-authenticate", ""))
        is_limited = response.status_code == httpx2.codes.FORBIDDEN and challenge.wants_more
        if response.status_code != httpx2.codes.UNAUTHORIZED and not is_limited:
            return
        if not problem:
            with suppress(PanpanError):  # then the next login asks the server again
                await self._logins.keep_challenge(self._url, challenge)
        wanted = f", {challenge.scope[:_MAX_SCOPE_CHARS]}" if challenge.scope else ""
        if problem:
            self._refused(f"cannot be used: {problem}", wants_login=False)
        elif is_limited:
            self._refused(f"wants further scopes for this{wanted}; to grant them, {self._advice}", wants_login=True)
        else:
            self._refused(f"wants a login; {self._advice}", wants_login=True)


class _Refused(Protocol):
    def __call__(self, why: str, *, wants_login: bool) -> None: ...


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _with_token(request: httpx2.Request, login: Login | None) -> httpx2.Request:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"
    return request
