"""Logins at MCP servers by OAuth, as they are kept: a private file for each address of a server.

The rule: a token goes to the host that it was given for, and a refresh token to its issuer. Sessions share a login: its
file is read again for each request, and only who holds its lock changes it. So it is renewed once, since many issuers
take a refresh token only once.
"""

import logging
import os
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from hashlib import blake2b
from pathlib import Path

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from panpan.capabilities.mcp.issuers import Issuers, LoginClient, RefusedError, read_token
from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MAX_BYTES = 200_000
_LOCK_S = 60.0
_RENEW_S = 10.0
"""Longest renewal: who leaves panpan waits for it."""
_POLL_S = 0.02
_MAX_SHOWN_CHARS = 200
_FINAL_ERRORS = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Errors of an issuer after which only a new login helps (RFC 6749, section 5.2)."""
_PARAMETER = compile_late(r'(?:^|[\s,])(error|scope|resource_metadata)=(?:"([^"]*)"|([^\s,"]+))')
_SCOPES = compile_late(r"[\x20\x21\x23-\x5b\x5d-\x7e]{1,1000}")
_ADDRESS = compile_late(r"https?://[\x21\x23-\x7e]{1,2000}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Challenge:
    """Wishes of a server: the parts of a header `WWW-Authenticate` that matter (RFC 6750, RFC 9728)."""

    scope: str = ""
    resource_metadata: str = ""
    wants_more: bool = False
    """True if there is a login, whose scopes are not enough."""

    @classmethod
    def read(cls, header: str) -> "Challenge":
        """Return the parts of a header that can be used; anybody may have written it."""
        found: dict[str, str] = {}
        for one in _PARAMETER.finditer(header):
            found.setdefault(one[1], one[2] if one[2] is not None else one[3])
        scope, address = found.get("scope", ""), found.get("resource_metadata", "")
        return cls(
            scope if _SCOPES.fullmatch(scope) else "",
            address if _ADDRESS.fullmatch(address) else "",
            found.get("error") == "insufficient_scope",
        )

    @property
    def header(self) -> str:
        """The header with these parts."""
        parts = (
            'error="insufficient_scope"' if self.wants_more else "",
            f'scope="{self.scope}"' if self.scope else "",
            f'resource_metadata="{self.resource_metadata}"' if self.resource_metadata else "",
        )
        return f"Bearer {', '.join(filter(None, parts))}"


class Login(BaseModel):
    """A login at one server."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    issuer: str
    token_endpoint: str
    revocation_endpoint: str = ""
    client: LoginClient
    resource: str = ""
    """The server as its issuer knows it (RFC 8707); empty if it is not named."""
    access_token: str
    refresh_token: str = ""
    scope: str = ""
    """Scopes that were granted, with blanks in between."""
    renew_at: float = 0.0
    """Seconds since 1970 from which on it is renewed; 0 if that is not known."""
    expires_at: float = 0.0
    """Seconds since 1970 at which the token ends; 0 if that is not known."""

    @property
    def has_ended(self) -> bool:
        return 0 < self.expires_at <= time.time()

    @property
    def about(self) -> str:
        """Issuer, scopes and end, for people."""
        scopes = f" for {self.scope[:_MAX_SHOWN_CHARS]}" if self.scope else ""
        end = ""
        if self.expires_at and not self.refresh_token:
            with suppress(ValueError, OverflowError, OSError):  # a damaged file may say anything
                end = time.strftime(", until %Y-%m-%d %H:%M", time.localtime(self.expires_at))
        return clean_line(f"logged in at {self.issuer[:_MAX_SHOWN_CHARS]}{scopes}{end}")


class Kept(BaseModel):
    """Content of a file: a login, and what the server has asked for since."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    url: str
    login: Login | None = None
    challenge: str = ""
    """The header of a refusal that no login has answered yet."""


class Logins:
    """The logins of a user.

    Args:
        folder: Folder of their files.
        issuers: The way to authorization servers.
    """

    def __init__(self, folder: Path, issuers: Issuers) -> None:
        self.issuers = issuers
        self._folder = folder
        self._unwritten: dict[str, tuple[str, Login]] = {}
        """Renewed logins that could not be written, each with the token that it took the place of."""

    def get(self, url: str) -> Login | None:
        """Return the login at a server; None if there is none, or its file cannot be read."""
        kept = self._kept(url).login
        before, renewed = self._unwritten.get(url, ("", None))
        return renewed if kept is not None and kept.access_token == before else kept

    def challenge(self, url: str) -> str:
        """Return the header of a server's refusal that no login has answered yet; empty if there is none."""
        return self._kept(url).challenge

    def has_file(self, url: str) -> bool:
        """True if anything is kept of a server, even if it cannot be read."""
        return os.path.lexists(self._file(url))

    async def keep(self, url: str, login: Login) -> None:
        """Keep a login in place of the one before.

        Raises:
            PanpanError: It cannot be kept.
        """
        async with self._locked(url):
            self._write(Kept(url=url, login=login))

    async def keep_challenge(self, url: str, challenge: Challenge) -> None:
        """Keep what a server wants, for the next login.

        Raises:
            PanpanError: It cannot be kept.
        """
        if self.challenge(url) != challenge.header:
            async with self._locked(url):
                self._write(self._kept(url).model_copy(update={"challenge": challenge.header}))

    async def current(self, url: str) -> Login | None:
        """Return the login at a server, renewed if it is time for that; None if there is none.

        Raises:
            PanpanError: Its token has ended, and cannot be renewed now.
        """
        login = self.get(url)
        if login is None or not login.refresh_token or not 0 < login.renew_at <= time.time():
            return login
        try:
            return await self.renewed(url, login)
        except PanpanError:
            if login.has_ended:
                raise
            return login

    async def renewed(self, url: str, used: Login) -> Login | None:
        """Return a login with another token than one that was used; None if only a new login helps.

        Raises:
            PanpanError: It cannot be renewed now.
        """
        renewed: Login | None = None
        async with self._locked(url):
            kept = self.get(url)
            if kept is None or kept.access_token != used.access_token:  # another session, or the user, was quicker
                return kept
            if kept.refresh_token:
                # what an issuer has given has to be kept, since the refresh token may be void by then
                try:
                    with anyio.fail_after(_RENEW_S, shield=True):
                        renewed = await self._renew(url, kept)
                except TimeoutError:
                    raise ToolError("its login cannot be renewed: no answer in time") from None
        return renewed

    async def _renew(self, url: str, kept: Login) -> Login | None:
        form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        if kept.resource:
            form["resource"] = kept.resource
        try:
            answer = read_token(*await self.issuers.post(url, kept.client, kept.token_endpoint, form))
        except RefusedError as error:
            if error.code in _FINAL_ERRORS:
                self._write(Kept(url=url, challenge=self.challenge(url)))
                return None
            raise ToolError(f"its login cannot be renewed: {error}") from error
        except ToolError as error:
            raise ToolError(f"its login cannot be renewed at {kept.issuer[:_MAX_SHOWN_CHARS]}: {error}") from error
        renew_at, expires_at = answer.lifetime
        changes = {
            "access_token": answer.access_token,
            "refresh_token": answer.refresh_token or kept.refresh_token,
            "scope": kept.scope if answer.scope is None else answer.scope,
            "renew_at": renew_at,
            "expires_at": expires_at,
        }
        login = kept.model_copy(update=changes)
        try:
            self._write(self._kept(url).model_copy(update={"login": login}))
        except ConfigError as error:
            log.warning("a renewed login counts for this session alone: %s", error)
            before, _ = self._unwritten.get(url, (kept.access_token, None))
            self._unwritten[url] = before, login
        return login

    async def end(self, url: str) -> bool:
        """Forget a login; return True if its issuer was told that its tokens are void.

        Raises:
            PanpanError: It cannot be forgotten.
        """
        is_told = False
        async with self._locked(url):
            login = self.get(url)
            try:
                self._file(url).unlink(missing_ok=True)
            except OSError as error:
                raise ConfigError(f"{self._file(url)} cannot be removed: {error.strerror}") from error
            self._unwritten.pop(url, None)
        if login is not None and login.revocation_endpoint:
            form = {"token": login.refresh_token or login.access_token}
            with suppress(ToolError):  # it is forgotten in any case
                status, _ = await self.issuers.post(url, login.client, login.revocation_endpoint, form)
                is_told = status == 200
        return is_told

    def _kept(self, url: str) -> Kept:
        try:
            with os.fdopen(open_private_file(self._file(url), os.O_RDONLY), "rb") as file:
                kept = Kept.model_validate_json(file.read(_MAX_BYTES + 1))
        except (OSError, PanpanError, ValidationError):
            return Kept(url=url)
        return kept if kept.url == url else Kept(url=url)

    def _write(self, kept: Kept) -> None:
        try:
            data = kept.model_dump_json(indent=1).encode()
            make_private_folder(self._folder)
            write_atomic(self._file(kept.url), data, mode=0o600)
        except (ToolError, OSError, ValueError) as error:
            raise ConfigError(f"the login cannot be kept: {error}") from error

    @asynccontextmanager
    async def _locked(self, url: str) -> AsyncGenerator[None, None]:
        """Hold the lock of a login; it is waited for in slices, so that a cancel is not."""
        lock, deadline = self._file(url).with_suffix(".lock"), anyio.current_time() + _LOCK_S
        with ExitStack() as stack:
            make_private_folder(self._folder)
            while True:
                try:
                    stack.enter_context(hold_lock(lock, wait_s=0))
                except LockHeldError:
                    if anyio.current_time() > deadline:
                        raise ToolError("its login is in use by another session; try again") from None
                    await anyio.sleep(_POLL_S)
                    continue
                except LockUnsupportedError:
                    pass
                break
            yield

    def _file(self, url: str) -> Path:
        return self._folder / f"{blake2b(url.encode(), digest_size=16).hexdigest()}.json"


def folder_below(home: Path) -> Path:
    """Return the folder of logins below a panpan home."""
    return home / "mcp" / "logins"
