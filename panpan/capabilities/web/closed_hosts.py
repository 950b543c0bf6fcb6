"""An outside without the hosts that the user has closed: redirects and the browser ask for much that no call names.

The rule: a closed host has no address, and a closed address is not dialled, whatever leads to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from anyio.abc import ByteStream

from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork


def without_closed_hosts(network: WebNetwork, closed_by: Callable[[str], str | None]) -> WebNetwork:
    """Return the outside without some hosts.

    Args:
        network: All of it.
        closed_by: Returns what closes a host or an address, in words; None where nothing does.
    """

    def require_open(host: str) -> None:
        if (why := closed_by(host)) is not None:
            raise ToolError(f"{host} is closed by {why}")

    async def resolve(host: str, port: int) -> Sequence[str]:
        require_open(host)
        return await network.resolve(host, port)

    async def dial(address: str, port: int) -> ByteStream:
        require_open(address)
        return await network.dial(address, port)

    proxy = None if network.proxy is None else replace(network.proxy, require_open=require_open)
    return replace(network, resolve=resolve, dial=dial, proxy=proxy)
