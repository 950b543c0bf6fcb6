"""Requests to authorization servers, which MCP servers name: through panpan's guard, and with answers that are checked.

The rule: a server on the network may name public addresses with TLS and no others, and no text of an answer that may
hold a token gets into a message.
"""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import without_tags
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.system.web.url_guard import PrivateHosts, read_url

MAX_BYTES = 200_000
"""Longest answer of an authorization server."""
ANSWER_S = 30.0
_LONGEST_LIFE_S = 315_360_000
"""Ten years."""
_MAX_WHY_CHARS = 200
_MOST_REDIRECTS = 5


def _seconds(value: Any) -> Any:
    """Return a number of seconds; some servers write it as text."""
    if isinstance(value, bool):
        raise ValueError("is no number")
    return float(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


Token = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,16384}$")]
Scopes = Annotated[str, Field(pattern=r"^[\x20\x21\x23-\x5b\x5d-\x7e]{0,4000}$")]
"""Scopes with blanks in between (RFC 6749, section 3.3)."""


class TokenAnswer(BaseModel):
    """Answer of a token endpoint (RFC 6749, section 5.1)."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, hide_input_in_errors=True)

    access_token: Token
    token_type: Annotated[str, Field(pattern=r"^(?i:bearer)$")] = "Bearer"
    refresh_token: Token | None = None
    scope: Scopes | None = None
    expires_in: Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=_LONGEST_LIFE_S)] | None = None

    @property
    def lifetime(self) -> tuple[float, float]:
        """When it is renewed and when it ends, in seconds since 1970; zeros if that is not known."""
        if not self.expires_in:
            return 0.0, 0.0
        now = time.time()
        return now + self.expires_in - min(30.0, self.expires_in / 10), now + self.expires_in


class LoginClient(BaseModel):
    """Panpan as an authorization server knows it."""

    model_config = ConfigDict(frozen=True)

    client_id: str
    client_secret: str = ""
    method: str = "none"
    """Way to show the secret: `client_secret_basic`, `client_secret_post` or `none` (RFC 7591, section 2)."""


class RefusedError(ToolError):
    """An authorization server says no: its `error` code."""

    def __init__(self, problem: str, code: str) -> None:
        super().__init__(problem)
        self.code = code


def read_token(status: int, body: bytes) -> TokenAnswer:
    """Return the token in an answer.

    Raises:
        RefusedError: The server says no.
        ToolError: There is no token in it.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict) and isinstance(code := answer.get("error"), str):
        about = answer.get("error_description")
        text = f"{code}: {about}" if isinstance(about, str) else code
        raise RefusedError(without_tags(clean_line(text))[:_MAX_WHY_CHARS], code)
    if status not in (200, 201):
        raise ToolError(f"it answers with the status {status}")
    try:
        return TokenAnswer.model_validate(answer)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, one["loc"])) or "all of it" for one in error.errors()}))
        raise ToolError(f"its answer is no token that can be used ({clean_line(wrong)[:_MAX_WHY_CHARS]})") from None


class Issuers:
    """The way to authorization servers.

    Args:
        network: The network.
        user_agent: Name of panpan for them.
    """

    def __init__(self, network: WebNetwork, user_agent: str) -> None:
        self._network = network
        self._user_agent = user_agent

    def require_fit(self, server: str, url: str) -> None:
        """Raise ToolError unless an address is one that an MCP server may name for a login."""
        network, client = self._for(server)
        plain = client.plain(url)
        is_own = network.private.opens(plain.host, plain.address) or plain.origin == read_url(server).origin
        if plain.scheme != "https" and not is_own:
            raise ToolError(f"{plain.host} is named for the login without TLS; its address has to begin with https")

    async def refusal_of(
        self, server: str, method: str, headers: Mapping[str, str], content: bytes | None
    ) -> str | int:
        """Return the header with which an MCP server asks for a login; else the status of its answer."""
        _, client = self._for(server)
        async with client, client.stream(method, server, headers=headers, content=content, timeout_s=ANSWER_S) as said:
            return said.headers.get("www-authenticate", "") if said.status == 401 else said.status

    async def ask(
        self, server: str, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Ask an address that an MCP server has named, and return the status, the headers and the body.

        Raises:
            ToolError: It may not be asked, or does not answer.
        """
        self.require_fit(server, url)
        _, client = self._for(server)
        asking = client.stream(
            method,
            url,
            headers={"accept": "application/json", **headers},
            content=content,
            timeout_s=ANSWER_S,
            max_redirects=0 if method == "POST" else _MOST_REDIRECTS,
        )
        async with client, asking as said:
            return said.status, said.headers, await said.read(MAX_BYTES, within_s=ANSWER_S)

    async def post(self, server: str, client: LoginClient, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Send a form as a client, and return the status and the body.

        Raises:
            ToolError: The address may not be asked, or does not answer.
        """
        headers, fields = {"content-type": "application/x-www-form-urlencoded"}, dict(form)
        if client.method == "client_secret_basic" and client.client_secret:
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields["client_id"] = client.client_id
            if client.method == "client_secret_post":
                fields["client_secret"] = client.client_secret
        status, _, body = await self.ask(server, "POST", url, headers, urlencode(fields).encode())
        return status, body

    def _for(self, server: str) -> tuple[WebNetwork, GuardedClient]:
        """Return the network that a server may name addresses of, and the client for it."""
        plain = read_url(server)
        network = self._network.for_page(plain)  # private hosts of the user only for a server that is on one
        if plain.host == "localhost" or (plain.address is not None and plain.address.is_loopback):
            here, private = PrivateHosts.parse(("localhost", "127.0.0.0/8", "::1")), network.private
            names, networks = private.names | here.names, private.networks + here.networks
            network = replace(network, private=replace(private, names=names, networks=networks))
        return network, GuardedClient(network, user_agent=self._user_agent, own=(server,))
