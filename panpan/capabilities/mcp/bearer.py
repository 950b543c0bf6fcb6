"""The token of a login in each request to a server."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import httpx2

from panpan.capabilities.mcp.logins import Login, Logins
from panpan.errors import PanpanError
from panpan.system.text.terminal_text import clean_line
from panpan.types.pattern import compile_late

_SCOPE = compile_late(r'\bscope="?([^",]*)')
_MORE = compile_late(r'\berror="?insufficient_scope\b')
_OTHERS = compile_late(r'\b(?:error|resource_metadata)=(?:"[^"]*"|[^\s,]+)')
_MAX_SCOPE_CHARS = 300


class Bearer(httpx2.Auth):
    """Adds the token of a login, renews it once where it is refused, and tells what the server wants then.

    Args:
        name: Name of the server.
        url: Its address.
        logins: The logins.
        refused: Told why the server cannot be used without a login of the user.
        limited: Told why it refuses a call that wants further rights.
    """

    def __init__(
        self,
        name: str,
        url: str,
        logins: Logins,
        refused: Callable[[str], None],
        limited: Callable[[str], None],
    ) -> None:
        self._url = url
        self._logins = logins
        self._refused = refused
        self._limited = limited
        self._way = f"log in with /mcp login {name}, or in a shell with: panpan mcp login {name}"

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        login = await self._asked(self._logins.current(self._url))
        response = yield _with_token(request, login)
        if response.status_code == httpx2.codes.UNAUTHORIZED and login is not None:
            login = await self._asked(self._logins.renewed(login))
            if login is not None:
                response = yield _with_token(request, login)
        challenge = response.headers.get("www-authenticate", "")
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            await self._asked(self._logins.note(self._url, challenge))
            self._refused(f"wants a login; {self._way}")
        elif response.status_code == httpx2.codes.FORBIDDEN and wants_more(challenge):
            await self._asked(self._logins.note(self._url, challenge))
            scope = _SCOPE.search(challenge)
            rights = f", {clean_line(scope[1])[:_MAX_SCOPE_CHARS]}" if scope else ""
            self._limited(f"wants further rights for this{rights}; to grant them, {self._way}")

    async def _asked(self, asking: Awaitable[Login | None]) -> Login | None:
        """Return what the logins say; what goes wrong ends the server with its reason."""
        try:
            return await asking
        except PanpanError as error:
            self._refused(str(error))
            raise httpx2.ConnectError(str(error)) from error


def wants_more(challenge: str) -> bool:
    """True if a server refuses for want of further rights, and not of a login."""
    return _MORE.search(challenge) is not None


def with_scope(challenge: str, scope: str) -> str:
    """Return a challenge that asks for other rights."""
    others = [found[0] for found in _OTHERS.finditer(challenge)]
    return "Bearer " + ", ".join((f'scope="{scope}"', *others))


def _with_token(request: httpx2.Request, login: Login | None) -> httpx2.Request:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"
    return request
