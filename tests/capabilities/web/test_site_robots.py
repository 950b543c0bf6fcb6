"""robots.txt of sites on the loopback, and of some that do not answer."""

import anyio
import pytest
from anyio.abc import ByteStream

from panpan.capabilities.web.fetching import MAX_BYTES, SiteRobots
from panpan.errors import ToolError
from panpan.system.web.network import GuardedClient
from panpan.system.web.url_guard import plain_url
from tests.fakes.outside import PUBLIC, Network, serving

PAGE = plain_url("http://example.org/page")


async def test_waiters_for_a_missing_site_share_one_request() -> None:
    network = Network()
    refused: list[str] = []

    async with GuardedClient(network.web, user_agent="panpan/1") as client:
        robots = SiteRobots(client, "panpan/1")

        async def ask() -> None:
            try:
                await robots.check(PAGE)
            except ToolError as error:
                refused.append(str(error))

        async with anyio.create_task_group() as task_group:
            for _ in range(5):
                task_group.start_soon(ask)

    assert refused == ["example.org does not answer at port 80"] * 5
    assert network.dialled == [(PUBLIC, 80)]


async def test_cancelled_waiter_for_a_site_holds_up_nobody() -> None:
    is_asked, may_answer = anyio.Event(), anyio.Event()

    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        is_asked.set()
        await may_answer.wait()
        await stream.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /page")

    async with serving(serve) as port, GuardedClient(Network(ports={(PUBLIC, 80): port}).web, user_agent="a") as client:
        robots = SiteRobots(client, "panpan/1")
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(robots.check, PAGE)
            await is_asked.wait()
            task_group.cancel_scope.cancel()
        may_answer.set()
        with pytest.raises(ToolError, match="closes this page"):
            await robots.check(PAGE)


async def test_endless_robots_txt_counts_up_to_a_limit() -> None:
    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /page\n")
        while True:
            await stream.send(b"Disallow: /x\n" * 10_000)

    async with serving(serve) as port, GuardedClient(Network(ports={(PUBLIC, 80): port}).web, user_agent="a") as client:
        robots = SiteRobots(client, "panpan/1")
        with pytest.raises(ToolError, match="closes this page"):
            await robots.check(PAGE)

        site = robots._sites[PAGE.origin]
    assert site.robots is not None
    assert len(site.robots.rules) < MAX_BYTES / len("Disallow: /x")
