"""One login of the user at a server: its issuer is found, the user agrees in a browser, and the token is kept.

The library `mcp` decides what is asked of whom (OAuth 2.1, RFC 7591, 8414, 8707, 9207, 9728, and client metadata
documents). What it asks goes through panpan's guard: a server may name public addresses with TLS and no others.
"""

import time
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from anyio import to_thread
from anyio.abc import SocketStream
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types.version import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl

from panpan.capabilities.mcp.bearer import wants_more, with_scope
from panpan.capabilities.mcp.elicitation import shown_address
from panpan.capabilities.mcp.entries import ServerEntry
from panpan.capabilities.mcp.logins import Login, LoginClient, Logins
from panpan.errors import ConfigError, ToolError, unwrap_single_exception
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import without_tags
from panpan.types.dataclass import dataclass

PERSON_S = 300.0
"""Seconds that the user has to agree in the browser."""
_PATH = "/callback"
_MAX_HEAD_BYTES = 32_768
_MAX_WHY_CHARS = 500
_READ_S = 10.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A page that the user is asked to open."""

    address: str
    """Address of the issuer's page."""
    issuer: str
    """Host of it."""
    scope: str
    """Rights that are asked for, with blanks in between; empty for those that the issuer gives by itself."""
    name: str
    """Name of the server."""

    @property
    def lines(self) -> str:
        """The request, for people."""
        rights = f", for {clean_line(self.scope)[:_MAX_WHY_CHARS]}" if self.scope else ""
        where = shown_address(f"https://{self.issuer}").removeprefix("https://")
        return f"The MCP server {self.name} wants you to log in at {where}{rights}. Open this:\n{self.address}"


Show = Callable[[Prompt], Awaitable[None]]
"""Shows the user what to open."""
Paste = Callable[[], Awaitable[str]]
"""Returns the address that the browser ended at, which the user has copied; it waits for ever if nobody can."""


async def never_pasted() -> str:
    """Wait for the browser alone."""
    await anyio.sleep_forever()
    return ""


async def open_browser(address: str) -> None:
    """Open an address in the user's browser, if there is one."""
    with suppress(webbrowser.Error, OSError):
        await to_thread.run_sync(webbrowser.open, address, abandon_on_cancel=True)


async def log_in(entry: ServerEntry, logins: Logins, show: Show, paste: Paste = never_pasted) -> Login:
    """Let the user log in at a server, keep the login, and return it.

    Args:
        entry: The server.
        logins: The logins.
        show: Shows the user what to open.
        paste: Returns the address that the browser ended at.

    Raises:
        ConfigError: The server wants no login, or there is none; says why.
    """
    url = entry.settings.url
    if entry.transport == "stdio" or url is None:
        raise ConfigError(f"the server {entry.name} is a program; only servers with an address have logins")
    if "authorization" in {name.lower() for name in entry.settings.headers}:
        raise ConfigError(f"the server {entry.name} has a header Authorization, which counts; remove it to log in")
    try:
        challenge = await _challenge(entry, url, logins)
        with unwrap_single_exception():
            async with _Callback.listening(entry.settings.callback_port) as callback:
                flow = _Flow(entry, url, logins, callback, show, paste)
                login = await flow.run(challenge)
        logins.keep(login)
    except (OAuthFlowError, ToolError, httpx2.InvalidURL, ValueError) as error:
        why = without_tags(clean_line(str(error)))[:_MAX_WHY_CHARS]
        raise ConfigError(f"there is no login at {entry.name}: {why}") from error
    except TimeoutError:
        raise ConfigError(f"there is no login at {entry.name}: nobody agreed within {PERSON_S:g} s") from None
    return login


async def _challenge(entry: ServerEntry, url: str, logins: Logins) -> str:
    """Return the header with which a server refuses: as it does now, else as it did last."""
    kept = logins.get(url)
    if kept is not None and wants_more(kept.challenge):
        challenge = kept.challenge
    else:
        headers = {name: value.get_secret_value() for name, value in entry.settings.headers.items()}
        headers |= {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        hello = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        is_stream = entry.transport == "sse"
        status, answered, _ = await logins.ask(
            url, "GET" if is_stream else "POST", url, headers, None if is_stream else hello
        )
        challenge = answered.get("www-authenticate", "") if status == httpx2.codes.UNAUTHORIZED else ""
        if status != httpx2.codes.UNAUTHORIZED and kept is None:
            raise ConfigError(f"the server {entry.name} asks for no login: it answers {status} without one")
        challenge = challenge or (kept.challenge if kept is not None else "")
    return with_scope(challenge, " ".join(entry.settings.scopes)) if entry.settings.scopes else challenge


class _Flow:
    """One login, as the library leads through it."""

    def __init__(
        self, entry: ServerEntry, url: str, logins: Logins, callback: "_Callback", show: Show, paste: Paste
    ) -> None:
        self._entry = entry
        self._url = url
        self._logins = logins
        self._callback = callback
        self._show = show
        self._paste = paste
        self._token: OAuthToken | None = None
        self._state = ""
        own = entry.settings.client_id or ""
        self._document = own if is_valid_client_metadata_url(own) else None
        self._provider = OAuthClientProvider(
            url,
            OAuthClientMetadata(
                client_name="panpan",
                redirect_uris=[AnyUrl(callback.address)],
                token_endpoint_auth_method="none",
            ),
            self,
            self._open,
            self._answer,
            self._document,
        )

    async def run(self, challenge: str) -> Login:
        """Go from a refusal to a login."""
        asked = httpx2.Request("POST", self._url, headers={"mcp-protocol-version": LATEST_PROTOCOL_VERSION})
        status = httpx2.codes.FORBIDDEN if wants_more(challenge) else httpx2.codes.UNAUTHORIZED
        refusal = httpx2.Response(status, headers={"www-authenticate": challenge} if challenge else {}, request=asked)
        async with aclosing(self._provider.async_auth_flow(asked)) as flow:
            answer = await anext(flow)
            while self._token is None:
                answer = await flow.asend(refusal if answer is asked else await self._sent(answer))
        return self._login(self._token)

    def _login(self, token: OAuthToken) -> Login:
        context = self._provider.context
        found, client = context.oauth_metadata, context.client_info
        assert client is not None
        return Login(
            url=self._url,
            issuer=str(found.issuer) if found else urljoin(self._url, "/"),
            token_endpoint=str(found.token_endpoint) if found else urljoin(self._url, "/token"),
            revocation_endpoint=str(found.revocation_endpoint or "") if found else "",
            client=LoginClient(
                client_id=client.client_id,
                client_secret=client.client_secret or "",
                method=client.token_endpoint_auth_method or "none",
            ),
            resource=context.get_resource_url(),
            access_token=token.access_token,
            refresh_token=token.refresh_token or "",
            scope=token.scope or "",
            expires_at=time.time() + token.expires_in if token.expires_in else 0.0,
        )

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: request.headers[name] for name in request.headers if name in _SENT}
        content = request.content or None
        status, answered, body = await self._logins.ask(self._url, request.method, str(request.url), headers, content)
        kind = {"content-type": answered.get("content-type", "")}
        return httpx2.Response(status, headers=kind, content=body, request=request)

    async def _open(self, address: str) -> None:
        """Let the user open the issuer's page."""
        self._logins.require_fit(self._url, address)
        parts = urlsplit(address)
        asked = parse_qs(parts.query)
        self._state = asked["state"][0]
        found, client = self._provider.context.oauth_metadata, self._provider.context.client_info
        if found is not None and client is not None and client.client_secret and self._entry.settings.client_id:
            ways = found.token_endpoint_auth_methods_supported or ["client_secret_basic"]
            if "client_secret_basic" not in ways and "client_secret_post" in ways:
                client.token_endpoint_auth_method = "client_secret_post"
        await self._show(Prompt(address, parts.netloc, " ".join(asked.get("scope", ())), self._entry.name))

    async def _answer(self) -> AuthorizationCodeResult:
        """Return what the issuer says by way of the browser."""
        with anyio.fail_after(PERSON_S):
            query = await self._callback.wait(self._state, self._paste)
        if "error" in query:
            about = query.get("error_description", "")
            raise ToolError(f"{query['error']}{f': {about}' if about else ''}")
        return AuthorizationCodeResult(code=query.get("code", ""), state=query["state"], iss=query.get("iss"))

    # what the library asks of a place for tokens

    async def get_tokens(self) -> OAuthToken | None:
        """Return the rights of the login before, so that further ones are asked for along with them."""
        kept = self._logins.get(self._url)
        scope = kept.scope if kept is not None else ""
        return OAuthToken(access_token="-", scope=scope) if scope else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take the token."""
        self._token = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client of the settings; each login registers another one where there is none."""
        own = self._entry.settings
        if own.client_id is None or self._document is not None:
            return None
        secret = own.client_secret.get_secret_value() if own.client_secret else None
        return OAuthClientInformationFull(
            client_id=own.client_id,
            client_secret=secret,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            redirect_uris=[AnyUrl(self._callback.address)],
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take nothing: it is kept with the token."""


_SENT = frozenset({"accept", "authorization", "content-type", "mcp-protocol-version"})
"""Headers of the library's requests that are sent on; the others are the guarded client's."""


class _Callback:
    """A port of this machine to which the issuer's page sends the browser at the end."""

    def __init__(self, port: int) -> None:
        self.address = f"http://localhost:{port}{_PATH}"
        self._state = ""
        self._heard: dict[str, str] = {}
        self._is_heard = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def listening(cls, port: int | None) -> "AsyncGenerator[_Callback, None]":
        """Listen at a port, or at any."""
        try:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port or 0)
        except OSError as error:
            raise ConfigError(f"the port {port} for the browser's answer cannot be used: {error.strerror}") from error
        async with listener, anyio.create_task_group() as group:
            callback = cls(port or int(listener.extra(anyio.abc.SocketAttribute.local_port)))
            group.start_soon(listener.serve, callback._take)
            yield callback
            group.cancel_scope.cancel("the login is over")

    async def wait(self, state: str, paste: Paste) -> Mapping[str, str]:
        """Return what comes with this state: from the browser, or from the user who has copied it."""
        self._state = state
        async with anyio.create_task_group() as group:

            async def take_pasted() -> None:
                while (pasted := await paste()) and not self._hear(pasted):
                    pass

            group.start_soon(take_pasted)
            await self._is_heard.wait()
            group.cancel_scope.cancel("the answer is there")
        return self._heard

    def _hear(self, address: str) -> bool:
        """Take an address if it has the state, which nobody else knows."""
        try:
            query = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
        except ValueError:
            return False
        if not self._state or query.get("state") != self._state:
            return False
        self._heard = query
        self._is_heard.set()
        return True

    async def _take(self, stream: SocketStream) -> None:
        """Answer one request of the browser."""
        head = bytearray()
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with stream:
                with anyio.move_on_after(_READ_S):
                    while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD_BYTES:
                        head += await stream.receive()
                method, _, rest = head.partition(b" ")
                target = rest.partition(b" ")[0].decode("latin-1")
                is_right = method == b"GET" and target.startswith(f"{_PATH}?") and self._hear(target)
                said = self._said() if is_right else "This is not the answer that panpan waits for."
                page = f"<!doctype html><meta charset=utf-8><title>panpan</title><p>{escape(said)}</p>".encode()
                status = "200 OK" if is_right else "404 Not Found"
                await stream.send(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
                    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                    + page
                )

    def _said(self) -> str:
        if "error" in self._heard:
            return "The login was refused. You can close this page."
        return "panpan has the answer. You can close this page and go back to the terminal."


if TYPE_CHECKING:
    from mcp.client.auth import TokenStorage

    def _is_storage(flow: _Flow) -> TokenStorage:
        return flow
