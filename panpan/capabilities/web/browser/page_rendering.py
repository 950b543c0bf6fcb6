"""One page in the browser: opened, waited for, scrolled, read and closed.

The rule: every step has its time, and the page its own proxy and its own storage. A page gets no permission, opens no
other page, saves no file and asks the user nothing; and nothing of it is left when it is closed.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from html import unescape
from typing import TYPE_CHECKING, Any

import anyio
from anyio import CancelScope

from panpan.capabilities.web.browser.browser import (
    Allow,
    BrowserProfile,
    BrowserTimeouts,
    RenderedPage,
    RenderRequest,
    Scroll,
)
from panpan.capabilities.web.browser.running_chromium import PROXY_HOST, RunningChromium
from panpan.errors import ToolError
from panpan.system.environment import how_to_install
from panpan.system.web.filter_proxy import FilterProxy
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PlainUrl, PrivateHosts, plain_url
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page, Response


_TRIES = 4
_TRY_AGAIN_S = 0.3

_READ = """(() => {
  const root = document.documentElement, html = root ? root.outerHTML : "";
  return {html: html.slice(0, MOST), isCut: html.length > MOST, title: (document.title || "").slice(0, 500)};
})()"""

_SCROLL = """(() => {
  const root = document.scrollingElement || document.documentElement;
  if (!root) return {height: 0, isAtEnd: true};
  let box = root, size = root.scrollHeight > innerHeight + 8 ? Infinity : 0;
  const all = document.querySelectorAll("main,div,section,ul,ol,table,article");
  for (let i = 0; i < all.length && i < 2000 && size !== Infinity; i++) {
    const one = all[i];
    if (one.scrollHeight <= one.clientHeight + 8 || one.clientHeight < 100) continue;
    const flow = getComputedStyle(one).overflowY;
    if ((flow === "auto" || flow === "scroll") && one.scrollHeight > size) { box = one; size = one.scrollHeight; }
  }
  const screen = box === root ? innerHeight : box.clientHeight;
  box.scrollTop = STEP ? box.scrollTop + Math.max(100, screen * 0.9) : box.scrollHeight;
  return {height: box.scrollHeight, isAtEnd: box.scrollTop + screen >= box.scrollHeight - 8};
})()"""
"""Scrolls the page, or the largest box in it where the page itself has nothing below."""


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """A document as it is when it is read."""

    html: str
    is_cut: bool
    title: str


@dataclass(frozen=True, slots=True)
class Scrolled:
    """Position of a page after a scroll."""

    height: int
    """Height of all that can be scrolled to, in pixels."""
    is_at_end: bool


class PageWorld:
    """Asks one page."""

    def __init__(self, session: "CDPSession", answer_s: float) -> None:
        self._session = session
        self._answer_s = answer_s

    async def document(self, max_chars: int) -> SeenDocument:
        """Return the document, its HTML cut at `max_chars`; raise `ToolError` if the page does not answer."""
        found = await self._asked(_READ.replace("MOST", str(max_chars)))
        return SeenDocument(str(found["html"]), bool(found["isCut"]), str(found["title"]))

    async def scroll(self, *, is_step: bool) -> Scrolled:
        """Scroll down, by a screen or to the end.

        Raises:
            ToolError: The page does not answer.
        """
        found = await self._asked(_SCROLL.replace("STEP", "true" if is_step else "false"))
        return Scrolled(int(found["height"]), bool(found["isAtEnd"]))

    async def _asked(self, expression: str) -> dict[str, Any]:
        from playwright.async_api import Error

        try:
            with anyio.fail_after(self._answer_s):
                for _ in range(_TRIES - 1):
                    try:
                        return await self._asked_once(expression)
                    except Error:  # the page navigated in between
                        await anyio.sleep(_TRY_AGAIN_S)
                return await self._asked_once(expression)
        except TimeoutError:
            raise ToolError(
                f"the page's scripts kept it busy; it could not be read within {self._answer_s:g} s"
            ) from None

    async def _asked_once(self, expression: str) -> dict[str, Any]:
        from playwright.async_api import Error

        tree = await self._session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        world = await self._session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "panpan"})
        asked = {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True}
        answer = await self._session.send("Runtime.evaluate", {**asked, "timeout": self._answer_s * 1000})
        value = answer["result"].get("value")
        if not isinstance(value, dict):
            raise Error("the page gave no answer")
        return value


# Decides where the page itself may navigate: to no host that the user was not asked about, whoever sends it there. Each
# address is judged before it is requested, including redirects, scripts, forms and refreshes. What the page loads is
# not judged here; that goes through the proxy.

_MAX_REFUSED = 3


class MainFrame:
    """Keeps a page where it may be. Made by `watched`.

    Args:
        session: Speaks to the page.
        frame: The page's own, as Chromium calls it.
        allow: Raises ToolError where an address is not to be asked for.
        private: Hosts that the page may lead to although they are not public.
    """

    def __init__(self, session: "CDPSession", frame: str, allow: Allow, private: PrivateHosts) -> None:
        self._session = session
        self._frame = frame
        self._allow = allow
        self._private = private
        self._refused: dict[str, None] = {}

    @classmethod
    async def watched(cls, session: "CDPSession", allow: Allow, private: PrivateHosts) -> "MainFrame":
        """Return the frame of a page. From now on `allow` is asked before it goes anywhere."""
        tree = await session.send("Page.getFrameTree")
        main = cls(session, tree["frameTree"]["frame"]["id"], allow, private)
        session.on("Fetch.requestPaused", main._judge)
        await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document", "requestStage": "Request"}]})
        return main

    @property
    def refused(self) -> Sequence[str]:
        """Reasons why the page did not go to an address; each once, only the first few."""
        return tuple(self._refused)

    async def _judge(self, paused: dict[str, Any]) -> None:
        from playwright.async_api import Error

        answer, more = "Fetch.continueRequest", {}
        if paused.get("frameId") == self._frame:
            try:
                self._allow(plain_url(paused["request"]["url"], self._private))
            except ToolError as refusal:
                answer, more = "Fetch.failRequest", {"errorReason": "Aborted"}  # the page stays unchanged
                if len(self._refused) < _MAX_REFUSED:
                    self._refused[str(refusal)] = None
        with suppress(Error):  # the page is closed
            await self._session.send(answer, {"requestId": paused["requestId"], **more})


# Hides from pages that a program drives the browser, only if the user's own settings say so. It changes what pages see,
# and nothing that they may do. Whoever turns it on is responsible for what sites allow.

SCRIPTS = "playwright-stealth>=2,<3"
"""The package that has them, as in the extra `browser` of pyproject.toml."""


def without_driver(user_agent: str) -> str:
    """Return the user agent of a Chromium that has a window."""
    return user_agent.replace("HeadlessChrome", "Chrome")


async def hide_driver(context: "BrowserContext") -> None:
    """Let the pages of `context` see the browser as one that a person uses.

    Raises:
        ToolError: The scripts for it are not installed.
    """
    try:
        from playwright_stealth import Stealth
    except ImportError:
        raise ToolError(
            f"web.stealth is on and playwright-stealth is not installed; run: {how_to_install(SCRIPTS)}"
        ) from None
    # keep the true platform: contradicting the user agent is what reveals a browser
    await Stealth(navigator_platform=False, navigator_platform_override=None).apply_stealth_async(context)


MAX_HTML_CHARS = 5_000_000
MAX_SCROLLS: Mapping[Scroll, int] = {"none": 0, "smart": 10, "full": 50}
_MAX_REFUSED_TOLD = 3
_CLOSE_S = 5.0
_NO_PAGE = (204, 205)
_OF_PROXY = "panpan: "
"""Beginning of the proxy's own answers."""


async def rendered_page(
    chromium: RunningChromium,
    network: WebNetwork,
    request: RenderRequest,
    profile: BrowserProfile,
    timeouts: BrowserTimeouts,
) -> RenderedPage:
    """Return the page once it is loaded and read; raise `ToolError` if it cannot be shown, or not in time."""
    async with FilterProxy(network.for_page(request.plain)) as proxy:
        try:
            return await _shown_through(proxy, chromium, request, profile, timeouts)
        except ToolError as exc:  # it would put the proxy's task group into an exception group
            refused = exc
    raise refused


async def _shown_through(
    proxy: FilterProxy,
    chromium: RunningChromium,
    request: RenderRequest,
    profile: BrowserProfile,
    timeouts: BrowserTimeouts,
) -> RenderedPage:
    from playwright.async_api import Error

    try:
        async with page_context(chromium, proxy, profile, timeouts.open_s) as context:
            return await _shown(context, proxy, request, timeouts)
    except Error as exc:
        raise _why_not_shown(request.plain, str(exc), proxy) from exc


@asynccontextmanager
async def page_context(
    chromium: RunningChromium, proxy: FilterProxy, profile: BrowserProfile | None = None, open_s: float = 15.0
) -> AsyncGenerator["BrowserContext", None]:
    """Give what one page has for itself: its way out, its storage, and no permission.

    Raises:
        ToolError: Chromium does not answer within `open_s`, and is ended.
    """
    from playwright.async_api import Error

    profile = profile or BrowserProfile()
    try:
        with anyio.fail_after(open_s):
            context = await _new_context(chromium, proxy, profile)
    except Error:  # Chromium or its driver has ended
        await chromium.kill()
        raise
    except TimeoutError:
        await chromium.kill()
        raise ToolError(f"the browser did not answer within {open_s:g} s, and was ended") from None
    try:
        if profile.hides_driver:
            await hide_driver(context)
        yield context
    finally:
        with CancelScope(shield=True):
            is_closed = False
            with anyio.move_on_after(_CLOSE_S), suppress(Exception):
                await context.close()
                is_closed = True
            if not is_closed:  # otherwise it would remain for the rest of the session
                await chromium.kill()


async def _new_context(chromium: RunningChromium, proxy: FilterProxy, profile: BrowserProfile) -> "BrowserContext":
    return await chromium.driven.new_context(
        proxy={"server": f"http://{PROXY_HOST}:{proxy.port}", "bypass": "<-loopback>"},
        accept_downloads=False,
        service_workers="block",
        permissions=[],
        user_agent=profile.user_agent or await _user_agent(chromium, profile),
        storage_state=profile.storage,  # type: ignore[arg-type]  # the same, as a dict of its own type
    )


async def _user_agent(chromium: RunningChromium, profile: BrowserProfile) -> str:
    session = await chromium.driven.new_browser_cdp_session()
    version = await session.send("Browser.getVersion")
    await session.detach()
    said = str(version["userAgent"])
    return without_driver(said) if profile.hides_driver else f"{said} {profile.product}".strip()


async def _shown(
    context: "BrowserContext", proxy: FilterProxy, request: RenderRequest, timeouts: BrowserTimeouts
) -> RenderedPage:
    from playwright.async_api import TimeoutError as PlaywrightTimeout

    page = await context.new_page()
    answers = _Answers(page)
    context.on("page", _close)
    session = await context.new_cdp_session(page)
    main_frame = await MainFrame.watched(session, request.allow, proxy.private)
    world = PageWorld(session, timeouts.answer_s)
    notes: list[str] = []
    await _open(page, request, main_frame, timeouts)
    try:
        await page.wait_for_load_state("domcontentloaded", timeout=timeouts.load_s * 1000)
    except PlaywrightTimeout:
        notes.append(f"the page was still loading after {timeouts.load_s:g} s; this is what was there")
    if request.wait_s:
        await anyio.sleep(request.wait_s)
    notes += await _scroll(world, MAX_SCROLLS[request.scroll], timeouts.scroll_s, is_step=request.scroll == "full")
    seen = await world.document(MAX_HTML_CHARS)
    url = page.url
    if not url.startswith(("http://", "https://")):
        raise ToolError(
            f"{request.plain.host} went to an address of another kind ({url[:5]!r}…), which is not a web page"
        )
    if answers.status >= 400 and proxy.has_said(refusal := _refusal_in(seen.html)):
        raise ToolError(refusal)
    if seen.is_cut:
        notes.append(f"only the first {MAX_HTML_CHARS:,} characters of the document are here")
    notes += main_frame.refused
    return RenderedPage(url, answers.status, seen.html, seen.title, (*notes, *_told(proxy.refused)))


async def _open(page: "Page", request: RenderRequest, main_frame: MainFrame, timeouts: BrowserTimeouts) -> None:
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as PlaywrightTimeout

    try:
        await page.goto(request.plain.url, wait_until="commit", timeout=timeouts.begin_s * 1000)
    except PlaywrightTimeout:
        raise ToolError(f"{request.plain.host} did not begin to answer within {timeouts.begin_s:g} s") from None
    except Error as exc:
        if main_frame.refused:
            raise ToolError(main_frame.refused[-1]) from exc
        raise


class _Answers:
    """Keeps what a server said for the page itself, whichever way it went there."""

    def __init__(self, page: "Page") -> None:
        self._page = page
        self.status = 0
        page.on("response", self._note)

    def _note(self, response: "Response") -> None:
        request = response.request
        if response.status in _NO_PAGE or 300 <= response.status < 400:
            return  # the page stays, or the target of the redirect answers, unless that is forbidden
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self.status = response.status


async def _close(page: "Page") -> None:
    with suppress(Exception):  # it may be closed already
        await page.close()


async def _scroll(world: PageWorld, most: int, pause_s: float, *, is_step: bool) -> Sequence[str]:
    """Scroll as long as more comes; return what a reader has to know of it."""
    height = still = 0
    for _ in range(most):
        scrolled = await world.scroll(is_step=is_step)
        await anyio.sleep(pause_s)
        still = still + 1 if scrolled.height <= height and scrolled.is_at_end else 0
        if still == 2:
            return ()
        height = max(height, scrolled.height)
    return (f"there is more below; the page was scrolled {most} times",) if most else ()


def _refusal_in(html: str) -> str:
    """Return the proxy's message in place of a page; empty if it is a page."""
    start, found, rest = html[:500].partition(_OF_PROXY)
    if not found or "<pre" not in start:
        return ""
    return unescape(rest.partition("\n")[0].partition("</pre>")[0])


def _told(refused: Sequence[str]) -> Sequence[str]:
    told = [f"a part of the page was not loaded: {one}" for one in refused[:_MAX_REFUSED_TOLD]]
    more = len(refused) - _MAX_REFUSED_TOLD
    return [*told, f"{more} more parts were not loaded"] if more > 0 else told


def _why_not_shown(plain: PlainUrl, text: str, proxy: FilterProxy) -> ToolError:
    reason = text.strip().partition("\n")[0]
    if proxy.refused and ("ERR_TUNNEL" in reason or "ERR_ABORTED" in reason or "chrome-error" in reason):
        return ToolError(proxy.refused[-1])
    if "Download is starting" in reason:
        return ToolError(f"{plain.host} serves a file there, which the browser does not save")
    if "crashed" in reason:
        return ToolError(f"the page of {plain.host} crashed; it may need more memory than a page gets")
    if "Cannot find context" in reason:
        return ToolError(f"the page of {plain.host} loads itself again and again, and could not be read")
    _, found, code = reason.partition("net::")
    if found:
        return ToolError(f"the browser cannot open the page of {plain.host}: {code.partition(' ')[0]}")
    return ToolError(f"the browser failed at the page of {plain.host}: {reason[:300]}")
