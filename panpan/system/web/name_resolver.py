"""Asking the system for the addresses of a host.

The rule: what comes back has been checked by nobody. It goes to the URL guard before anything is dialled.
"""

import socket
from collections.abc import Sequence

import anyio

from panpan.errors import ToolError

TIMEOUT_S = 15.0


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return all addresses of `host`, a name of ASCII letters, best first.

    Raises:
        ToolError: It has none, or none was told in time.
    """
    try:
        with anyio.fail_after(TIMEOUT_S):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise ToolError(f"no name server told the address of {host} within {TIMEOUT_S:g} s") from None
    except (OSError, UnicodeError):  # UnicodeError: too long for a name server
        raise ToolError(
            f"{host} has no address that can be found; look whether the name is right, and the network there"
        ) from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
