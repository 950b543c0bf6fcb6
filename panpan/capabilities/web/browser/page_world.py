"""What is asked of a page, in a world of its own, which the page's scripts cannot see or change.

The rule: nothing that a page says is unbounded. What is asked for is cut in the page itself, so that no more of it is
ever sent than is wanted.
"""

from typing import TYPE_CHECKING, Any

import anyio

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

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
    """A document as it stands."""

    html: str
    is_cut: bool
    title: str


@dataclass(frozen=True, slots=True)
class Scrolled:
    """Where a page is after a scroll."""

    height: int
    """Of all that can be scrolled to, in pixels."""
    is_at_end: bool


class PageWorld:
    """Asks one page.

    Args:
        session: Speaks to the page.
        answer_s: Seconds for it to answer; one whose scripts keep it busy does not.
    """

    def __init__(self, session: "CDPSession", answer_s: float) -> None:
        self._session = session
        self._answer_s = answer_s

    async def document(self, max_chars: int) -> SeenDocument:
        """Return the document, its HTML cut at `max_chars`.

        Raises:
            ToolError: The page does not answer.
        """
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
                    except Error:  # the page went somewhere else in between
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
