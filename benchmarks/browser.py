"""The browser's first page, from nothing, beside Playwright and Chromium with no more arguments than they need."""

from collections.abc import Iterator
from time import perf_counter

import anyio

from benchmarks.figure import Figure, ratio
from panpan.capabilities.web.browser.browser import Browser
from panpan.capabilities.web.browser.running_chromium import Launch, can_have_sandbox, find_chromium
from panpan.errors import ToolError
from panpan.system.environment import child_environment, user_environment
from tests.fakes.outside import PUBLIC, Network
from tests.fakes.web_site import Answer, Site, served

TITLE = "the browser: its start, and pages"

_PAGE = "<title>a page</title><body><script>document.body.append('made ' + 42)</script>"
_MOST_RATIO = 1.5


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark.

    Raises:
        RuntimeError: There is no browser here.
    """
    try:
        import playwright  # noqa: F401

        env = user_environment()
        program = find_chromium("auto", env.get("PATH", ""), env)
    except (ImportError, ToolError) as exc:
        raise RuntimeError(str(exc)) from exc
    ours: list[float] = []
    next_ones: list[float] = []
    bare: list[float] = []
    with served(Site({"/": Answer(_PAGE)})) as site:
        anyio.run(_bare, program, site.port)  # the first start reads Chromium from the disk
        for _ in range(runs):
            bare.append(anyio.run(_bare, program, site.port))
            first, after = anyio.run(_ours, program, site.port)
            ours.append(first)
            next_ones.append(after)
    beside = Figure("Playwright alone, its first page", "ms", bare)
    own = Figure("panpan, from nothing to the first page", "ms", ours)
    yield own
    yield beside
    yield ratio("panpan beside Playwright alone", own, beside, at_most=_MOST_RATIO, note="both start Chromium")
    yield Figure("panpan, each further page", "ms", next_ones, at_most=1_000)


async def _ours(program: str, port: int) -> tuple[float, float]:
    network = Network(names={"paper.example.org": [PUBLIC]}, ports={(PUBLIC, 80): port})
    browser = Browser(network.web, lambda: Launch(program, child_environment()))
    try:
        return await _shown(browser), await _shown(browser)
    finally:
        await browser.aclose()


async def _shown(browser: Browser) -> float:
    started_at = perf_counter()
    page = await browser.render("http://paper.example.org/", wait_s=0, scroll="none", allow=lambda _: None)
    took = (perf_counter() - started_at) * 1000
    if "made 42" not in page.html:
        raise RuntimeError("the page should hold what its script made")
    return took


async def _bare(program: str, port: int) -> float:
    from playwright.async_api import async_playwright

    started_at = perf_counter()
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=program, chromium_sandbox=can_have_sandbox())
        page = await chromium.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        content = await page.content()
        took = (perf_counter() - started_at) * 1000
        await chromium.close()
    if "made 42" not in content:
        raise RuntimeError("the page should hold what its script made")
    return took
