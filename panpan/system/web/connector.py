"""Connections to hosts of the web: whose name is looked up, checked, and dialled where it was checked.

The rule: what the URL guard returned is dialled, and no name server is asked again in between. Whatever else is asked
for, TLS is spoken with the name of the host, not with its address.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, to_thread
from anyio.abc import ByteStream

from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PlainUrl, dialled_addresses

if TYPE_CHECKING:
    from ssl import SSLContext

    from panpan.system.web.upstream_proxy import UpstreamProxy

MAX_DIALLED = 4
DIAL_S = 5.0
"""Seconds for one of a host's addresses to answer, where it has others."""
_CLOSE_S = 2.0


class Connector:
    """Opens connections.

    Args:
        network: How the outside is reached.
    """

    def __init__(self, network: WebNetwork) -> None:
        self._network = network
        self._certificates: SSLContext | None = None

    async def connected(self, plain: PlainUrl, *, is_own: bool = False) -> "tuple[ByteStream, UpstreamProxy | None]":
        """Return a connection to the host of an address, with TLS where its scheme says so.

        Where a proxy forwards requests of plain http, the connection leads to that proxy, which is returned, too.

        Args:
            plain: The address.
            is_own: True if the user's own settings name it; then it may lead anywhere.

        Raises:
            ToolError: It may not be reached, or cannot be.
        """
        proxy = await self._network.proxy_for(plain, is_own=is_own)
        own = (plain.origin,) if is_own else ()
        addresses = () if proxy else await dialled_addresses(plain, self._network.resolve, own=own)
        demands = await self._demands() if plain.scheme == "https" else None
        if proxy is None:
            stream = await self._dialled(plain, addresses)
        else:
            is_forwarded = proxy.forwards(plain.scheme)
            stream = await proxy.connected(plain.host, plain.port, is_tunnel=not is_forwarded)
            if is_forwarded:
                return stream, proxy
        return stream if demands is None else await _secured(stream, plain.host, demands), None

    async def _dialled(self, plain: PlainUrl, addresses: Sequence[str]) -> ByteStream:
        for address in addresses[:MAX_DIALLED]:
            with suppress(OSError), anyio.move_on_after(DIAL_S if len(addresses) > 1 else None):
                return await self._network.dial(address, plain.port)
        raise ToolError(f"{plain.host} does not answer at port {plain.port}")

    async def _demands(self) -> "SSLContext":
        """Return what is demanded of certificates; to find it out takes long the first time."""
        if self._certificates is None:
            try:
                self._certificates = await to_thread.run_sync(self._network.certificates)
            except OSError as exc:  # of ssl, too
                raise ToolError(
                    f"there are no certificates to trust ({exc.strerror or exc}); look at SSL_CERT_FILE"
                ) from exc
        return self._certificates


async def _secured(stream: ByteStream, host: str, demands: "SSLContext") -> ByteStream:
    from ssl import SSLError

    from anyio.streams.tls import TLSStream

    try:
        # Many servers close without the goodbye of TLS; a body's length tells whether it is whole.
        return await TLSStream.wrap(stream, hostname=host, ssl_context=demands, standard_compatible=False)
    except SSLError as exc:
        await close(stream)
        why = getattr(exc, "verify_message", "") or exc.reason or "it speaks no TLS"
        raise ToolError(f"there is no safe connection to {host}: {why}") from exc
    except (BrokenResourceError, ClosedResourceError, EndOfStream, OSError) as exc:
        await close(stream)
        raise ToolError(f"there is no safe connection to {host}: it ended the connection") from exc
    except BaseException:
        await close(stream)
        raise


async def close(stream: ByteStream) -> None:
    """Close a connection, whatever else is going on."""
    with (
        suppress(BrokenResourceError, ClosedResourceError, OSError),
        anyio.move_on_after(_CLOSE_S, shield=True),
    ):
        await stream.aclose()
