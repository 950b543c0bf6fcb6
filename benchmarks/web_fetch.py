"""WebFetch of a page of 2 MB from a server on the loopback, beside a bare client that only gets its bytes."""

from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

import anyio
import httpx2

from benchmarks.figure import Figure, ratio
from panpan.capabilities.web.fetching import fetch_page
from panpan.capabilities.web.settings import WebSettings
from panpan.capabilities.web.web_pages import FetchRequest, WebPages
from panpan.system.web.network import GuardedClient
from panpan.system.web.url_guard import PlainUrl
from tests.fakes.outside import PUBLIC, Network
from tests.fakes.web_site import Answer, Site, served

TITLE = "WebFetch of a page of 2 MB"

_PARAGRAPH = "<p>The seed of run {n} was {n}, with <a href='/runs/{n}'>its log</a>, its figures, and more.</p>\n"
_PAGE = "<html><head><title>Runs</title></head><body><article>{}</article></body></html>"
_BYTES = 2_000_000


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    count = _BYTES // len(_PARAGRAPH.format(n=10_000))
    page = _PAGE.format("".join(_PARAGRAPH.format(n=number) for number in range(10_000, 10_000 + count)))
    with served(Site({"/": Answer(page)})) as site:
        yield from anyio.run(_measured, site.port, runs)


async def _measured(port: int, runs: int) -> list[Figure]:
    network = Network(ports={(PUBLIC, 80): port})
    settings = WebSettings(pace_s=0, robots=False)
    bare: list[float] = []
    plain: list[float] = []
    whole: list[float] = []
    async with GuardedClient(network.web, user_agent="panpan") as client:
        pages = WebPages(client, settings, "panpan")

        async def allow(_: PlainUrl) -> None:
            pass

        for number in range(runs + 1):
            times = (
                await _bare_get(port),
                await _timed(lambda: fetch_page(client, "http://example.org/", allow, timeout_s=30)),
                await _timed(lambda: pages.page(FetchRequest("http://example.org/"))),
            )
            if number:  # the first one imports
                for values, value in zip((bare, plain, whole), times, strict=True):
                    values.append(value)
    beside = Figure("a bare httpx2 get", "ms", bare)
    got = Figure("its bytes by the guarded client", "ms", plain)
    read = Figure("read as Markdown", "ms", whole, at_most=3_000)
    return [
        beside,
        got,
        ratio("the guarded client beside the bare one", got, beside, at_most=3),
        read,
        ratio("read as Markdown beside a bare get", read, beside),
    ]


async def _bare_get(port: int) -> float:
    async with httpx2.AsyncClient(trust_env=False) as client:  # a new one, so that each get connects, as ours does
        return await _timed(lambda: client.get(f"http://127.0.0.1:{port}/"))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started_at = perf_counter()
    await work()
    return (perf_counter() - started_at) * 1000
