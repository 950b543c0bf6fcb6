"""What is wanted of a page, how it is shown, and how long that may take."""

from collections.abc import Mapping
from typing import Any

from panpan.capabilities.web.rendering import Allow, Scroll
from panpan.system.web.url_guard import PlainUrl
from panpan.types.dataclass import dataclass


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
