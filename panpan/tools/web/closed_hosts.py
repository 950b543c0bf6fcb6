"""An outside without the hosts that the user has closed, for the browser: it asks for much that no call names.

The rule: a closed host has no address.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork


def without_closed_hosts(network: WebNetwork, closed_by: Callable[[str], str | None]) -> WebNetwork:
    """Return the outside without some hosts.

    Args:
        network: All of it.
        closed_by: Returns what closes a host, in words; None where nothing does.
    """

    async def resolve(host: str, port: int) -> Sequence[str]:
        if (why := closed_by(host)) is not None:
            raise ToolError(f"{host} is closed by {why}")
        return await network.resolve(host, port)

    return replace(network, resolve=resolve)
