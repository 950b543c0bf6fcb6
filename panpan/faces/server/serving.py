"""The way from a command line to a server that listens, and its clean end."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from socket import socket

import anyio
from anyio import create_task_group

from panpan.cli_kit.serving import HttpPlace, ServedPlace
from panpan.cli_kit.stdio_server import end_at_signal, held_signals
from panpan.errors import ConfigError, unwrap_single_exception
from panpan.faces.http_server import served
from panpan.faces.server.app import ServerApp
from panpan.faces.server.guard import Entrance, Tokens
from panpan.faces.server.page_files import page_routes
from panpan.faces.session_commands import SessionCommands
from panpan.hub.open_sessions import OpenSessions
from panpan.session.command import Command
from panpan.session.frontend import SessionOptions
from panpan.system.processes.private_socket import listen_privately
from panpan.types.dataclass import dataclass

MAX_REQUESTS = 256
"""Most requests and streams at the same time."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Address of a server, and its conditions for clients."""

    http: HttpPlace | None
    """Address and token; None for a socket that only the user can open."""
    path: Path | None = None
    """Path of that socket."""
    only_reads: bool = False
    certificate: tuple[str, str] | None = None
    """Files with a certificate and its key; None for plain HTTP."""
    origins: Sequence[str] = ()
    """Origins of the page beside those of the address, as behind a proxy."""

    def listen(self) -> tuple[socket, str, Entrance]:
        """Return the socket that listens, the address for people, and the conditions of a request.

        Raises:
            ConfigError: The address, the path or the certificate cannot be used.
            OSError: The path cannot be used.
        """
        if self.http is None:
            assert self.path is not None
            return listen_privately(self.path), str(self.path), Entrance(self._tokens(None), None, ())
        if self.certificate is not None:
            _require_usable(*self.certificate)
        listening = self.http.listen()
        port = listening.getsockname()[1]
        scheme = "http" if self.certificate is None else "https"
        names = self.http.names(port, is_tls=self.certificate is not None)
        own = (name for name in names if f"https://{name}" not in self.origins)
        origins = [*(f"{scheme}://{name}" for name in own), *self.origins]
        address = f"{scheme}://{self.http.host}:{port}/"
        return listening, address, Entrance(self._tokens(self.http.token), names, origins)

    def _tokens(self, token: str | None) -> Tokens:
        return Tokens(token, only_reads=self.only_reads)


def _require_usable(certificate: str, key: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # an error of TLS is one, too
        reason = "a PEM certificate with its key, which has no password, is needed"
        raise ConfigError(f"cannot use {certificate} with {key}: {error.strerror or error}; {reason}") from error


async def serve(
    place: ServedPlace,
    options: SessionOptions,
    where: ServerPlace,
    *,
    say: Callable[[str], None],
    note: Callable[[str], None],
    ready: Callable[[str, str], None],
) -> None:
    """Serve until a signal comes.

    Args:
        place: Folders in which sessions may work.
        options: Options of all sessions.
        where: Where to listen.
        say: Prints one line on standard error.
        note: Gets a line for each request.
        ready: Given the address of the page and the token, once the server listens; without one, the latter is empty.

    Raises:
        ConfigError: The address or the certificate cannot be used.
    """
    listening, address, entrance = where.listen()
    token = None if where.http is None else where.http.token
    with held_signals() as signals, unwrap_single_exception():
        async with create_task_group() as group, OpenSessions(place, options, _commands, say) as sessions:
            group.start_soon(end_at_signal, signals, group.cancel_scope.cancel)
            app = ServerApp(sessions, entrance, page_routes(), note)
            async with served(
                app.asgi,
                listening,
                max_requests=MAX_REQUESTS,
                ws="websockets-sansio",
                certificate=where.certificate,
            ):
                ready(address, token or "")
                await anyio.sleep_forever()


def _commands(env: Mapping[str, str], further: Sequence[Command]) -> SessionCommands:
    return SessionCommands(env, further)
