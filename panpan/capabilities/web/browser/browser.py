"""The browser of a session: started when the first page is wanted, ended with the session.

The rule: there is one, and it is started again at most once for a page. Where it cannot be had, the sentence says how
to get it; nothing else of panpan needs it.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from panpan.capabilities.web.browser.page_wish import Manners, PageWish, Waits
from panpan.capabilities.web.rendering import Allow, RenderedPage, Scroll
from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import plain_url

if TYPE_CHECKING:
    from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium

MAX_PAGES = 4
MAX_WAIT_S = 30.0
_STEPS_S = 60.0
"""Beside what a page is given for each step: the start of the browser, scrolls and reading."""


class Browser:
    """Shows pages. Close it with the session.

    Args:
        network: How the outside is reached.
        launch: Says how Chromium is started; asked when it is. Raises ToolError where there is none.
        max_pages: That are open at the same time; others wait.
        user_agent: What servers are told of who asks; None: what Chromium says, and `product`.
        product: The name of this program, as `name/version`; not told where the driver is hidden.
        storage_for: Returns what a log-in to the site of a host has left, if there was one.
        waits: How long the steps of a page may take.
    """

    def __init__(
        self,
        network: WebNetwork,
        launch: Callable[[], "Launch"],
        *,
        max_pages: int = MAX_PAGES,
        user_agent: str | None = None,
        product: str = "",
        storage_for: Callable[[str], Mapping[str, Any] | None] = lambda _: None,
        waits: Waits | None = None,
    ) -> None:
        self._network = network
        self._launch = launch
        self._user_agent = user_agent
        self._product = product
        self._storage_for = storage_for
        self._waits = waits or Waits()
        self._free = anyio.Semaphore(max_pages)
        self._starting = anyio.Lock()
        self._chromium: RunningChromium | None = None
        self._is_closed = False

    @property
    def chromium(self) -> "RunningChromium | None":
        """What runs at the moment."""
        return self._chromium

    async def render(self, url: str, *, wait_s: float, scroll: Scroll, allow: Allow) -> RenderedPage:
        """Open a page, wait and scroll as asked, and give what it became.

        Args:
            url: A public address, as somebody wrote it.
            wait_s: Seconds given to its scripts after it was loaded, 0 to 30.
            scroll: How far down it is scrolled.
            allow: Asked before the page itself goes anywhere, its first address included; where it does not, the page
                stays where it is, and says so.

        Raises:
            ToolError: There is no browser, with the way to get one; the address is refused; or it took too long.
        """
        wish = PageWish(plain_url(url, self._network.private), min(max(wait_s, 0.0), MAX_WAIT_S), scroll, allow)
        storage = self._storage_for(wish.plain.host)
        async with self._free:
            chromium = await self._running()
            try:
                return await self._rendered(chromium, wish, storage)
            except ToolError:
                if chromium.is_alive or self._is_closed:
                    raise
            return await self._rendered(await self._running(), wish, storage)  # Chromium itself crashed or hung

    async def aclose(self) -> None:
        """End the browser; nothing more is shown."""
        self._is_closed = True
        async with self._starting:
            if self._chromium is not None:
                await self._chromium.aclose()
                self._chromium = None

    async def _rendered(
        self, chromium: "RunningChromium", wish: PageWish, storage: Mapping[str, Any] | None
    ) -> RenderedPage:
        from panpan.capabilities.web.browser.page_rendering import rendered_page

        manners = Manners(self._user_agent, self._product, chromium.launch.hides_driver, storage)
        limit_s = self._waits.begin_s + self._waits.load_s + wish.wait_s + _STEPS_S
        try:
            with anyio.fail_after(limit_s):
                return await rendered_page(chromium, self._network, wish, manners, self._waits)
        except TimeoutError:
            await chromium.kill()  # whatever hangs, the next page does not wait for it
            raise ToolError(f"the page of {wish.plain.host} was given up after {limit_s:g} s") from None

    async def _running(self) -> "RunningChromium":
        """Return Chromium, started where it does not run."""
        from panpan.capabilities.web.browser.running_chromium import RunningChromium  # most sessions show no page

        async with self._starting:
            if self._is_closed:
                raise ToolError("the session is about to end; no page is opened any more")
            if self._chromium is not None and not self._chromium.is_alive:
                await self._chromium.aclose()
                self._chromium = None
            if self._chromium is None:
                _require_asyncio()
                self._chromium = await RunningChromium.start(self._launch())
            return self._chromium


def _require_asyncio() -> None:
    """Playwright waits for futures of asyncio, and for nothing else."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ToolError(
            "there is no browser here: it needs asyncio, and the program that runs panpan runs it on trio"
        ) from None
