"""A proxy on the loopback, between clients of this machine and servers that stand for public ones."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from anyio.abc import ByteStream

from panpan.errors import ToolError
from panpan.system.sandbox.domain_proxy import DomainGrants
from panpan.system.web.proxy_connection import ProxyConnection, ProxyTimeouts, Route
from panpan.system.web.url_guard import Authority
from tests.fakes.outside import Network, serving


@asynccontextmanager
async def proxying(
    network: Network, domains: Sequence[str] = ("example.org",), *, timeouts: ProxyTimeouts | None = None
) -> AsyncGenerator[tuple[int, list[ToolError]], None]:
    """Run a proxy on a port of 127.0.0.1, and yield it with what it refused."""
    grants = DomainGrants(domains)
    refusals: list[ToolError] = []

    async def find_route(asked: Authority, default_port: int) -> Route:
        return await grants.route(asked, default_port, network.resolve)

    async def serve(stream: ByteStream) -> None:
        connection = ProxyConnection(
            stream, find_route=find_route, dial=network.dial, note=refusals.append, timeouts=timeouts or ProxyTimeouts()
        )
        await connection.serve()

    async with serving(serve) as port:
        yield port, refusals
