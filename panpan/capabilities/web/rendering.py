"""What WebFetch needs of a browser: the page as it is once its scripts have run.

The rule: a browser obeys the same guard as plain HTTP for everything that it loads, and says so where it had to stop.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

from panpan.system.web.url_guard import PlainUrl
from panpan.types.dataclass import dataclass

Scroll: TypeAlias = Literal["none", "smart", "full"]
"""How far down a page is scrolled before it is read: not at all, as long as more comes, or to its end."""

Allow: TypeAlias = Callable[[PlainUrl], None]
"""Raises ToolError where an address is not to be asked for."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as a browser showed it."""

    url: str
    """Where it ended, after redirects."""
    status: int
    """What the server said for the page itself."""
    html: str
    """The document as it stands after its scripts ran."""
    title: str
    notes: tuple[str, ...] = ()
    """What a reader of the page has to know: what was refused, what was not waited for."""


class PageRenderer(Protocol):
    """Opens pages in a browser."""

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
        ...


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the steps of a page may take, in seconds."""

    open_s: float = 15.0
    """For Chromium to have a new page; it takes a tenth of a second, unless it hangs."""
    begin_s: float = 60.0
    """For the server to begin its answer."""
    load_s: float = 15.0
    """For the document to be there; what is there by then is read all the same."""
    scroll_s: float = 0.4
    """After each scroll, for more to come."""
    answer_s: float = 10.0
    """For the page to be read; one whose scripts never pause cannot be."""


@dataclass(frozen=True, slots=True)
class PageWish:
    """What is wanted of a page."""

    plain: PlainUrl
    wait_s: float
    scroll: Scroll
    allow: Allow
    """Asked before the page itself goes anywhere."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How pages are shown."""

    user_agent: str | None = None
    """What servers are told of who asks; None: what Chromium says, and `product`."""
    product: str = ""
    """The name of the program that drives the browser, unless it is hidden."""
    hides_driver: bool = False
    storage: Mapping[str, Any] | None = None
    """Cookies and local storage that a log-in has left, as Playwright keeps them."""
