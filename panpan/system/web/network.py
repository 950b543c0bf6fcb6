"""How the outside is reached: who finds addresses, who connects, and whose certificates count.

The rule: this dials what it is given. Who asks has had the address from the URL guard.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio.abc import ByteStream

from panpan.system.name_resolver import resolve
from panpan.system.url_guard import Resolve
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from ssl import SSLContext

Dial: TypeAlias = Callable[[str, int], Awaitable[ByteStream]]
"""Connects to an IP address and a port; raises OSError."""


async def connect(address: str, port: int) -> ByteStream:
    """Connect to an IP address.

    Raises:
        OSError: Nothing takes the connection.
    """
    return await anyio.connect_tcp(address, port)


def usual_certificates() -> "SSLContext":
    """Return what is demanded of a server's certificate: what the clients of the models demand."""
    import httpx2  # takes 100 ms, and most sessions have it by then

    return httpx2.create_ssl_context()


@dataclass(frozen=True, slots=True)
class WebNetwork:
    """The outside, as the clients of it see it; tests give their own."""

    resolve: Resolve = resolve
    """Finds the addresses of a host."""
    dial: Dial = connect
    """Connects to one of them."""
    certificates: Callable[[], "SSLContext"] = usual_certificates
    """Says which certificates count; called in a thread."""
