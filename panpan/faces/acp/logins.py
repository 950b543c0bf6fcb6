"""Logins of an editor's user: what is offered without a model, and the end, at which stored keys are removed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from acp.exceptions import RequestError
from acp.schema import AuthMethodAgent, ClientCapabilities, TerminalAuthMethod
from anyio import to_thread

from panpan.app import kinds_of
from panpan.cli_kit.login import key_places, vendors_with_keys
from panpan.config.locations import panpan_home
from panpan.config.stored_keys import LOGIN, StoredKeys
from panpan.errors import ConfigError, PanpanError
from panpan.faces.acp.connection import invalid
from panpan.models.model_choice import NoKeyError, NoModelError
from panpan.session.frontend import SessionConfig, SessionOptions
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_line

LOGIN_OPTION = "--login"
"""Option of `panpan acp` that logs in on a terminal instead; the editor adds it to the command."""
AUTH_REQUIRED = -32000
"""Code of the error that asks the editor for a login."""
_METHOD = "login"
_NOT_SET_UP = "no model is set up; run `panpan login` in a terminal"


class Logins:
    """Logs in and out.

    Args:
        options: Options of all sessions, from the command line.
        warn: Prints one line on standard error.
    """

    def __init__(self, options: SessionOptions, warn: Callable[[str], None]) -> None:
        self._options = options
        self._warn = warn

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of sessions."""
        return SessionConfig(Path(), self._options).env

    async def offered(self, client: ClientCapabilities) -> Sequence[TerminalAuthMethod | AuthMethodAgent]:
        """Return the ways to log in; none if a model is set up."""
        if await self._is_set_up():
            return ()
        if client.auth is not None and client.auth.terminal:
            said = "Give panpan an API key"
            return [
                TerminalAuthMethod(id=_METHOD, type="terminal", name="Log in", description=said, args=[LOGIN_OPTION])
            ]
        said = "Run `panpan login` in a terminal, then go on here"
        return [AuthMethodAgent(id=_METHOD, name="Log in on a terminal", description=said)]

    async def require(self, method: str) -> None:
        """Refuse to go on before the user has logged in, by a way that was offered.

        Raises:
            RequestError: There is no such way, or the user has not.
        """
        if method != _METHOD:
            raise invalid(f"there is no way to log in called {clean_line(method)[:40]!r}; use {_METHOD!r}")
        if not await self._is_set_up():
            raise RequestError(AUTH_REQUIRED, _NOT_SET_UP)

    def require_key(self, session: Session) -> None:
        """Refuse to go on with a session whose stored key was removed.

        Raises:
            RequestError: It was.
        """
        if has_lost_key(session, self.env):
            raise RequestError(AUTH_REQUIRED, _NOT_SET_UP)

    async def end(self) -> None:
        """Remove all stored keys, and warn of each that is still set elsewhere.

        Raises:
            RequestError: None is stored, and the model has its key from elsewhere; or one cannot be removed.
        """
        try:
            still = await to_thread.run_sync(lambda: list(forget_keys(self.env)))
        except ConfigError as error:
            if await self._is_set_up():
                raise invalid(str(error)) from error
            return  # nobody is logged in
        for line in still:
            self._warn(line)

    async def _is_set_up(self) -> bool:
        """Return True unless a session would lack a model or a key."""
        config = SessionConfig(Path(), self._options)
        try:
            await to_thread.run_sync(config.resolve, kinds_of)
        except (NoModelError, NoKeyError):
            return False
        except PanpanError:  # `session/new` says what is wrong
            pass
        return True


def forget_keys(env: Mapping[str, str]) -> Iterator[str]:
    """Remove all stored keys, and yield a sentence for each key that is still set elsewhere; blocks.

    Raises:
        ConfigError: No key is stored, or one cannot be removed.
    """
    keys = _stored(env)
    stored = [vendor for vendor in vendors_with_keys() if keys.has(vendor.name)]
    if not stored:
        raise ConfigError(f"no key is stored, so none was removed; see {LOGIN} --list")
    for vendor in stored:
        keys.forget(vendor.name)
    for vendor in vendors_with_keys():
        for place in key_places(vendor, keys, env):
            yield f"{place} is still set"


def has_lost_key(session: Session, env: Mapping[str, str]) -> bool:
    """Return True if the model of a session has a stored key, and no key is stored any more."""
    return session.info.key_source.startswith(LOGIN) and not _stored(env).vendors


def _stored(env: Mapping[str, str]) -> StoredKeys:
    return StoredKeys(panpan_home(env, Path.cwd()))
