"""Folders, tools and address of `panpan mcp serve`.

A feature has tools for clients in `TOOLS` of its `served_tools.py`. They only read.
"""

import ipaddress
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from errno import EACCES, EADDRINUSE
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.text.terminal_text import printable
from panpan.types.dataclass import dataclass

ArgsT = TypeVar("ArgsT", bound=BaseModel)


class ServedPlace:
    """Folders in which clients may work, with all that is below them, and the settings there.

    Args:
        folders: At least one; a relative path of a client begins at the first.
        env: The environment of the server.
        overrides: Settings of the command line that started it, by dotted key.

    Raises:
        ConfigError: One is no folder.
    """

    def __init__(self, folders: Sequence[Path], env: Mapping[str, str], overrides: Mapping[str, object]) -> None:
        self.env = env
        self.overrides = overrides
        self.roots = tuple(map(canonical_path, folders))
        for given, root in zip(folders, self.roots, strict=True):
            if not root.is_dir():
                raise ConfigError(f"{printable(str(given))} is not a folder; name a folder that clients may work in")

    def holds(self, path: Path) -> bool:
        """Return True if a canonical path is one of the folders or below one."""
        return any(is_below(path, root) for root in self.roots)

    def folder(self, named: str) -> Path:
        """Return the canonical folder that a client names.

        Raises:
            ToolError: It is outside, or no folder. What is outside is not looked at any further.
        """
        try:
            place = canonical_path(self.roots[0] / named)
            is_served = self.holds(place)
        except (ToolError, OSError, ValueError):
            is_served = False
        if not is_served:
            roots = ", ".join(map(str, self.roots))
            raise ToolError(f"{printable(named)[:200]} is outside of the folders that are served; name one in {roots}")
        if not place.is_dir():
            raise ToolError(f"{printable(named)[:200]} is not a folder; name one that exists")
        return place


@dataclass(frozen=True, slots=True)
class ServedTool(Generic[ArgsT]):
    """A tool that only reads."""

    name: str
    title: str
    description: str
    input_model: type[ArgsT]
    run: Callable[[ArgsT, ServedPlace, Callable[[], bool]], str]
    """Returns the result; blocks. Asks now and then whether to go on. Raises PanpanError."""


_LEAST_TOKEN_CHARS = 16
_TOKEN_BYTES = 32
"""Random bytes of a token: 256 bits, which nobody guesses."""


class HttpPlace:
    """Address of a server over HTTP, and the token for it.

    Args:
        host: Name or address of this machine.
        port: Port; 0 for a free one.
        token: The user's own token; empty to make one.
        variable: Environment variable that the user's token is from.
        has_token: False if requests need none.
        names: Further names by which clients call the server, with ports, as behind a proxy.

    Raises:
        ConfigError: The address or the token cannot be used.
    """

    def __init__(
        self, host: str, port: int, *, token: str, variable: str, has_token: bool = True, names: Sequence[str] = ()
    ) -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"the host {printable(host)} is not known; name an address of this machine") from error
        family, _, _, _, where = found[0]
        self._family, self._address, self._port = family, where, port
        address = ipaddress.ip_address(where[0])
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        if address.is_unspecified or (mapped is not None and mapped.is_unspecified):
            raise ConfigError(f"{host} is every address of this machine; name the one that clients use")
        self.is_loopback = address.is_loopback
        if not has_token and not self.is_loopback:
            raise ConfigError("--no-token would let in everybody on the network; use it with 127.0.0.1 alone")
        if token and (
            len(token) < _LEAST_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token
        ):
            raise ConfigError(
                f"{variable} is no token; use {_LEAST_TOKEN_CHARS} ASCII characters or more, without blanks"
            )
        self.token = (token or secrets.token_urlsafe(_TOKEN_BYTES)) if has_token else None
        self.is_own_token = bool(token)
        self.variable = variable
        self._names = names
        self.host = f"[{host}]" if ":" in host else host

    def names(self, port: int, *, is_tls: bool = False) -> Sequence[str]:
        """Return the hosts by which clients may call the server, with ports unless clients leave these out.

        Args:
            port: Port that it listens at.
            is_tls: True if it speaks TLS.
        """
        own = ("localhost", "127.0.0.1", "[::1]") if self.is_loopback else ()
        hosts = dict.fromkeys((self.host, *own))
        short = hosts if port == (443 if is_tls else 80) else ()
        return [*(f"{name}:{port}" for name in hosts), *short, *self._names]

    def listen(self) -> socket.socket:
        """Return the socket that listens.

        Raises:
            ConfigError: The address is in use, or not of this machine.
        """
        listening = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(self._address)
            listening.listen()
        except OSError as error:
            listening.close()
            what = "choose another --port" if error.errno in (EADDRINUSE, EACCES) else "see --host and --port"
            raise ConfigError(f"cannot listen at {self.host}:{self._port}: {error.strerror}; {what}") from error
        return listening
