"""Logins at MCP servers by OAuth: what is kept of each, and how it is renewed and ended.

The rule: a token goes to the address that it was given for and nowhere else, and what renews it goes to its issuer.
Sessions share a login: its file is read again for each request, and one at a time renews it, since many issuers take
what renews a token only once.
"""

import base64
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote, urlencode

from anyio import CancelScope, to_thread
from pydantic import BaseModel, ConfigDict, ValidationError

from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_users_file
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import without_tags
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.system.web.url_guard import PrivateHosts, read_url

MAX_BYTES = 1_000_000
"""Longest file of a login, and longest answer of an issuer."""
_LOCK_S = 30.0
_ANSWER_S = 30.0
_EARLY_S = 30.0
"""A token is renewed so long before its end, since clocks differ."""
_MAX_WHY_CHARS = 300
_OVER = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Errors of an issuer after which only a new login helps (RFC 6749, section 5.2)."""


def folder_below(home: Path) -> Path:
    """Return the folder of logins below a panpan home."""
    return home / "mcp" / "logins"


class LoginClient(BaseModel):
    """Panpan as an issuer knows it."""

    model_config = ConfigDict(frozen=True)

    client_id: str
    client_secret: str = ""
    method: str = "none"
    """Way to show the secret: `client_secret_basic`, `client_secret_post` or `none` (RFC 7591, section 2)."""


class Login(BaseModel):
    """A login at one server."""

    model_config = ConfigDict(frozen=True)

    url: str
    """Address of the server; the token goes to no other one."""
    issuer: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    client: LoginClient = LoginClient(client_id="")
    resource: str = ""
    """The server as its issuer knows it (RFC 8707); empty if it is not named."""
    access_token: str = ""
    """Empty without a login: then only `challenge` counts."""
    refresh_token: str = ""
    scope: str = ""
    """Rights that were granted, with blanks in between."""
    expires_at: float = 0.0
    """End of the token in seconds since 1970; 0 if it is not known."""
    challenge: str = ""
    """The header `WWW-Authenticate` with which the server refused last; the next login asks for what it says."""

    @property
    def is_old(self) -> bool:
        """True if the token has ended, or does so in a moment."""
        return 0 < self.expires_at < time.time() + _EARLY_S

    @property
    def about(self) -> str:
        """Issuer, rights and end, for people; empty without a login."""
        if not self.access_token:
            return ""
        end = time.strftime(", until %Y-%m-%d %H:%M", time.localtime(self.expires_at)) if self.expires_at else ""
        rights = f" for {self.scope}" if self.scope else ""
        return clean_line(f"logged in at {self.issuer}{rights}{'' if self.refresh_token else end}")


class Logins:
    """The logins of a user.

    Args:
        folder: Folder of their files, one for each server.
        network: The way to issuers.
        user_agent: Name of panpan for them.
    """

    def __init__(self, folder: Path, network: WebNetwork, user_agent: str) -> None:
        self._folder = folder
        self._network = network
        self._user_agent = user_agent

    def get(self, url: str) -> Login | None:
        """Return what is kept for a server; None if that is nothing, or cannot be read."""
        try:
            kept = Login.model_validate_json(read_users_file(str(self._file(url)), max_bytes=MAX_BYTES))
        except (ToolError, ValidationError):
            return None
        return kept if kept.url == url else None

    def keep(self, login: Login) -> None:
        """Keep a login in place of the one before.

        Raises:
            ConfigError: It cannot be kept.
        """
        try:
            make_private_folder(self._folder)
            write_atomic(self._file(login.url), login.model_dump_json(indent=1).encode(), mode=0o600)
        except (ToolError, OSError) as error:
            raise ConfigError(f"the login cannot be kept: {error}") from error

    async def note(self, url: str, challenge: str) -> None:
        """Keep what a server wants, for the next login."""
        async with self._alone(url):
            kept = self.get(url) or Login(url=url)
            if kept.challenge != challenge:
                self.keep(kept.model_copy(update={"challenge": challenge[: MAX_BYTES // 100]}))

    async def current(self, url: str) -> Login | None:
        """Return the login at a server, renewed if its token has ended; None if there is none.

        Raises:
            ToolError: It cannot be renewed now.
        """
        login = self.get(url)
        if login is None or not login.access_token:
            return None
        return await self.renewed(login) if login.is_old and login.refresh_token else login

    async def renewed(self, used: Login) -> Login | None:
        """Return a login with another token than one that was used; None if there is no other.

        Raises:
            ToolError: It cannot be renewed now.
        """
        renewed: Login | None = None
        async with self._alone(used.url):
            kept = self.get(used.url)
            if kept is None or not kept.access_token:
                return None
            if kept.access_token != used.access_token:  # another session has renewed it, or the user has logged in
                return kept
            if not kept.refresh_token:
                return None
            with CancelScope(shield=True):  # an issuer that has given a new token takes the old one no more
                renewed = await self._renew(kept)
        return renewed

    async def _renew(self, kept: Login) -> Login | None:
        form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        if kept.resource:
            form["resource"] = kept.resource
        status, answer = await self._post(kept, kept.token_endpoint, form)
        if answer.get("error") in _OVER:
            self.keep(Login(url=kept.url, challenge=kept.challenge))
            return None
        token = answer.get("access_token")
        if status != 200 or not isinstance(token, str) or not token:
            why = clean_line(f"{status} {answer.get('error', '')} {answer.get('error_description', '')}".rstrip())
            raise ToolError(without_tags(f"its login cannot be renewed: {kept.issuer} answers {why[:_MAX_WHY_CHARS]}"))
        seconds = answer.get("expires_in")
        login = kept.model_copy(
            update={
                "access_token": token,
                "refresh_token": str(answer.get("refresh_token") or kept.refresh_token),
                "scope": str(answer.get("scope") or kept.scope),
                "expires_at": time.time() + seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0,
            }
        )
        self.keep(login)
        return login

    async def end(self, login: Login) -> bool:
        """Forget a login; return True if its issuer was told that its tokens are void."""
        is_told = False
        if login.access_token and login.revocation_endpoint:
            form = {"token": login.refresh_token or login.access_token}
            try:
                status, _ = await self._post(login, login.revocation_endpoint, form)
                is_told = status == 200
            except ToolError:  # it is forgotten all the same
                pass
        try:
            self._file(login.url).unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._file(login.url)} cannot be removed: {error.strerror}") from error
        return is_told

    async def _post(self, login: Login, url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, object]]:
        """Send a form to an issuer as its client, and return the status and what it says."""
        client, headers, fields = login.client, {}, dict(form)
        if client.method == "client_secret_basic" and client.client_secret:
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields["client_id"] = client.client_id
            if client.method == "client_secret_post":
                fields["client_secret"] = client.client_secret
        headers |= {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        status, _, body = await self.ask(login.url, "POST", url, headers, urlencode(fields).encode())
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        return status, answer if isinstance(answer, dict) else {}

    async def ask(
        self, server: str, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Ask an address that a server has named, and return the status, the headers and the body.

        Args:
            server: Address of the server. Only a server on this machine may name others there, or any without TLS.
            method: GET or POST.
            url: The address.
            headers: Headers.
            content: What to send.

        Raises:
            ToolError: It may not be asked, or does not answer.
        """
        client = self.require_fit(server, url)
        async with (
            client,
            client.stream(method, url, headers=headers, content=content, timeout_s=_ANSWER_S) as response,
        ):
            if url == server:  # what the server itself sends may be a stream without an end
                return response.status, response.headers, b""
            return response.status, response.headers, await response.read(MAX_BYTES, within_s=_ANSWER_S)

    def require_fit(self, server: str, url: str) -> GuardedClient:
        """Return the client for an address that a server may name for a login.

        Raises:
            ToolError: It may not name it.
        """
        network = self._network_for(server)
        client = GuardedClient(network, user_agent=self._user_agent, own=(server,))
        plain = client.plain(url)
        is_own = network.private.opens(plain.host, plain.address) or plain.origin == read_url(server).origin
        if plain.scheme != "https" and not is_own:
            raise ToolError(f"{plain.host} is named for the login without TLS; its address has to begin with https")
        return client

    def _network_for(self, server: str) -> WebNetwork:
        plain = read_url(server)
        is_here = plain.host == "localhost" or (plain.address is not None and plain.address.is_loopback)
        if not is_here:
            return self._network
        here = PrivateHosts.parse(("localhost", "127.0.0.0/8", "::1"))
        private = self._network.private
        names, networks = private.names | here.names, private.networks + here.networks
        return replace(self._network, private=replace(private, names=names, networks=networks))

    @asynccontextmanager
    async def _alone(self, url: str) -> AsyncGenerator[None, None]:
        """Change a login while no other session does."""
        with ExitStack() as stack:
            try:
                await to_thread.run_sync(self._lock, stack, url)
            except LockUnsupportedError:
                pass
            except LockHeldError as error:
                raise ToolError(f"its login is in use: {error}") from error
            yield

    def _lock(self, stack: ExitStack, url: str) -> None:
        make_private_folder(self._folder)
        stack.enter_context(hold_lock(self._file(url).with_suffix(".lock"), wait_s=_LOCK_S))

    def _file(self, url: str) -> Path:
        return self._folder / f"{blake2b(url.encode(), digest_size=16).hexdigest()}.json"
