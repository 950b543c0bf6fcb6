"""One login of the user at a server: its issuer is found, the user agrees in a browser, and the token is kept.

The library `mcp` decides what is asked of whom (OAuth 2.1, RFC 7591, 8414, 8707, 9207, 9728, and client metadata
documents). What it asks goes the way of `issuers.py`, and answers with tokens are read there.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from mcp_types.version import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, ValidationError

from panpan.capabilities.mcp.bearer import silence_library
from panpan.capabilities.mcp.callback import Callback, Paste
from panpan.capabilities.mcp.elicitation import shown_address
from panpan.capabilities.mcp.entries import ServerEntry
from panpan.capabilities.mcp.issuers import LoginClient, TokenAnswer, read_token
from panpan.capabilities.mcp.logins import Challenge, Login, Logins
from panpan.errors import ConfigError, PanpanError, ToolError, unwrap_single_exception
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import without_tags
from panpan.types.dataclass import dataclass

PERSON_S = 300.0
"""Seconds that the user has to agree in the browser."""
_MAX_WHY_CHARS = 500
_MAX_SCOPE_CHARS = 200

_FORWARDED_HEADERS = frozenset({"authorization", "content-type", "mcp-protocol-version"})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoginPage:
    """A page that the user is asked to open."""

    name: str
    """Name of the server."""
    address: str
    page: str
    """Host of the page."""
    issuer: str
    """Host of the issuer."""
    token: str
    """Host that gets the code, and gives the token for it."""
    scope: str
    """Scopes that are asked for, with blanks in between; empty for those that the issuer gives by itself."""

    @property
    def lines(self) -> str:
        """The request, for people."""
        page, issuer, token = (_shown_host(host) for host in (self.page, self.issuer, self.token))
        others = [] if issuer == page else [f"the issuer is {issuer}"]
        others += [] if token == page else [f"{token} gets the code"]
        note = f" ({'; '.join(others)})" if others else ""
        scopes = f", for {clean_line(self.scope)[:_MAX_SCOPE_CHARS]}" if self.scope else ""
        return f"The MCP server {self.name} wants you to log in at {page}{note}{scopes}. Open this:\n{self.address}"


Show = Callable[[LoginPage], Awaitable[None]]
"""Shows the user what to open."""


async def never_pasted(is_wrong: bool) -> str:
    """Wait for the browser alone."""
    return ""


async def log_in(entry: ServerEntry, logins: Logins, show: Show, paste: Paste = never_pasted) -> Login:
    """Let the user log in at a server, keep the login, and return it.

    Args:
        entry: The server.
        logins: The logins.
        show: Shows the user what to open.
        paste: Returns the address that the browser ended at.

    Raises:
        ConfigError: The server wants no login, or it failed; says why.
    """
    silence_library()
    url = entry.settings.url
    if entry.transport == "stdio" or url is None:
        raise ConfigError(f"the server {entry.name} is a program; only servers with an address have logins")
    if "authorization" in {name.lower() for name in entry.settings.headers}:
        raise ConfigError(f"the server {entry.name} has a header Authorization, which counts; remove it to log in")
    try:
        challenge = await _challenge(entry, url, logins)
        with unwrap_single_exception():
            async with Callback.listening(entry.settings.callback_port) as callback:
                flow = _Flow(entry, url, logins, callback, show, paste)
                login = await flow.run(challenge)
        await logins.keep(url, login)
    except ConfigError:
        raise
    except Exception as error:  # servers of strangers answer here; whatever it is, the session goes on
        log.debug("the login at %s failed", entry.name, exc_info=not isinstance(error.__cause__, ValidationError))
        raise ConfigError(f"the login at {entry.name} failed: {_reason(error)}") from error
    return login


def _reason(error: Exception) -> str:
    """Return why a login failed, without text that may hold a token."""
    match error:
        case TimeoutError():
            return f"nobody agreed within {PERSON_S:g} s"
        case PanpanError() | OAuthFlowError() if not isinstance(error.__cause__, ValueError):
            return without_tags(clean_line(str(error)))[:_MAX_WHY_CHARS]
        case _:
            return f"an answer cannot be understood ({type(error).__name__})"


async def _challenge(entry: ServerEntry, url: str, logins: Logins) -> Challenge:
    """Return what a server wants: as it says now, else as it said last."""
    challenge = Challenge.read(logins.challenge(url))
    if not challenge.wants_more:
        headers = {name: value.get_secret_value() for name, value in entry.settings.headers.items()}
        headers |= {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        is_stream = entry.transport == "sse"
        hello = None if is_stream else b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        said = await logins.issuers.refusal_of(url, "GET" if is_stream else "POST", headers, hello)
        if isinstance(said, str):
            challenge = Challenge.read(said)
        elif logins.get(url) is None and not logins.challenge(url):
            raise ConfigError(f"the server {entry.name} asks for no login: it answers {said} without one")
    if not entry.settings.scopes:
        return challenge
    return Challenge(" ".join(entry.settings.scopes), challenge.resource_metadata, challenge.wants_more)


class _Flow:
    """One login, as the library leads through it; also its place for tokens (`TokenStorage`)."""

    def __init__(
        self, entry: ServerEntry, url: str, logins: Logins, callback: "Callback", show: Show, paste: Paste
    ) -> None:
        self._entry = entry
        self._url = url
        self._logins = logins
        self._callback = callback
        self._show = show
        self._paste = paste
        self._token: TokenAnswer | None = None
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

    async def run(self, challenge: Challenge) -> Login:
        """Go from a refusal to a login."""
        asked = httpx2.Request("POST", self._url, headers={"mcp-protocol-version": LATEST_PROTOCOL_VERSION})
        status = httpx2.codes.FORBIDDEN if challenge.wants_more else httpx2.codes.UNAUTHORIZED
        refusal = httpx2.Response(status, headers={"www-authenticate": challenge.header}, request=asked)
        async with aclosing(self._provider.async_auth_flow(asked)) as flow:
            request = await anext(flow)
            while self._token is None:
                request = await flow.asend(refusal if request is asked else await self._sent(request))
        return self._login(self._token)

    @property
    def _metadata(self) -> OAuthMetadata | None:
        """Metadata of the issuer; None for a server of the first revision, which is its own issuer."""
        context = self._provider.context
        if context.oauth_metadata is None and context.auth_server_url is not None:
            raise ToolError(f"its issuer {context.auth_server_url} does not say how one logs in there")
        return context.oauth_metadata

    def _login(self, token: TokenAnswer) -> Login:
        context, found = self._provider.context, self._metadata
        renew_at, expires_at = token.lifetime
        return Login(
            issuer=str(found.issuer) if found else urljoin(self._url, "/"),
            token_endpoint=str(found.token_endpoint) if found else urljoin(self._url, "/token"),
            revocation_endpoint=str(found.revocation_endpoint or "") if found else "",
            client=self._client,
            resource=context.get_resource_url(),
            access_token=token.access_token,
            refresh_token=token.refresh_token or "",
            scope=context.client_metadata.scope or "" if token.scope is None else token.scope,
            renew_at=renew_at,
            expires_at=expires_at,
        )

    @property
    def _client(self) -> LoginClient:
        client = self._provider.context.client_info
        assert client is not None, "there is one before the user is asked"
        method = client.token_endpoint_auth_method or "none"
        return LoginClient(client_id=client.client_id, client_secret=client.client_secret or "", method=method)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        """Ask for the library, and return the answer; that with the token as far as it can be used."""
        if request.method == "POST":
            self._require_issuer()
        headers = {name: request.headers[name] for name in request.headers if name in _FORWARDED_HEADERS}
        content = request.content or None
        ask = self._logins.issuers.ask
        status, answered, body = await ask(self._url, request.method, str(request.url), headers, content)
        if request.method == "POST" and b"grant_type=" in request.content:
            self._token = read_token(status, body)
            body, status = b'{"access_token": "-", "token_type": "Bearer"}', httpx2.codes.OK
        kind = {"content-type": answered.get("content-type", "")}
        return httpx2.Response(status, headers=kind, content=body, request=request)

    def _require_issuer(self) -> None:
        """Refuse an issuer without metadata, without PKCE, or that is not the one of the settings."""
        found, own = self._metadata, self._entry.settings
        if found is None:
            return
        if own.issuer is not None and str(found.issuer).rstrip("/") != own.issuer.rstrip("/"):
            raise ToolError(f"its issuer is {found.issuer}, and not {own.issuer} as your settings say")
        methods = found.code_challenge_methods_supported
        if methods is not None and "S256" not in methods:
            raise ToolError(f"its issuer {found.issuer} does not protect the code (PKCE with S256)")
        hosts = {
            urlsplit(str(one)).netloc for one in (found.issuer, found.authorization_endpoint, found.token_endpoint)
        }
        if len(hosts) > 1 and own.client_secret is not None and own.issuer is None:
            raise ToolError(
                f"it would send your client_secret to {urlsplit(str(found.token_endpoint)).netloc}; if that is right, "
                f'write issuer = "{found.issuer}" beside it'
            )

    async def _open(self, address: str) -> None:
        """Let the user open the issuer's page."""
        self._require_issuer()
        found = self._metadata
        if found is not None:
            page = str(found.authorization_endpoint)
            if "#" in page:
                raise ToolError("the address of its page has a #, which is not allowed (RFC 6749, section 3.1)")
            if "?" in page:
                address = f"{page}&{address[len(page) + 1 :]}"
        self._logins.issuers.require_fit(self._url, address)
        asked, page_host = parse_qs(urlsplit(address).query), urlsplit(address).netloc
        self._callback.expect(asked["state"][-1])
        self._choose_method(found)
        issuer, token = (found.issuer, found.token_endpoint) if found else (self._url, self._url)
        hosts = urlsplit(str(issuer)).netloc, urlsplit(str(token)).netloc
        await self._show(LoginPage(self._entry.name, address, page_host, *hosts, asked.get("scope", [""])[-1]))

    def _choose_method(self, found: OAuthMetadata | None) -> None:
        """Choose the way in which the secret of the settings is shown."""
        client = self._provider.context.client_info
        if found is not None and client is not None and client.client_secret and self._entry.settings.client_secret:
            ways = found.token_endpoint_auth_methods_supported or ["client_secret_basic"]
            if "client_secret_basic" not in ways and "client_secret_post" in ways:
                client.token_endpoint_auth_method = "client_secret_post"

    async def _answer(self) -> AuthorizationCodeResult:
        """Return what the issuer says by way of the browser."""
        with anyio.fail_after(PERSON_S):
            query = await self._callback.wait(self._paste)
        if "error" in query:
            about = query.get("error_description", "")
            raise ToolError(f"{query['error']}{f': {about}' if about else ''}")
        return AuthorizationCodeResult(code=query.get("code", ""), state=query["state"], iss=query.get("iss"))

    async def get_tokens(self) -> OAuthToken | None:
        """Return the scopes of the login before, so that further ones are asked for along with them."""
        login = self._logins.get(self._url)
        return OAuthToken(access_token="-", scope=login.scope) if login is not None and login.scope else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take nothing: the token was read before."""

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


def _shown_host(host: str) -> str:
    return shown_address(f"https://{host}").removeprefix("https://")


if TYPE_CHECKING:
    from mcp.client.auth import TokenStorage

    def _is_storage(flow: _Flow) -> TokenStorage:
        return flow
