"""A page that is given as long as it takes: a machine that stands still has run none of its scripts when it is read."""

from collections.abc import Callable

from panpan.capabilities.web.browser.browser import Allow, Browser, RenderedPage
from tests.fakes.outside import anywhere


async def rendered(
    browser: Browser,
    url: str,
    has_come: Callable[[RenderedPage], object],
    *,
    first_s: float = 0.5,
    allow: Allow = anywhere,
) -> RenderedPage:
    """Return the page once what it makes has come; as it is at last where that never comes.

    Args:
        browser: Shows it.
        url: Its address.
        has_come: Whether what the page makes is there.
        first_s: Seconds for its scripts; it is opened again with more where they were not enough.
        allow: Where it may go.
    """
    for wait_s in (first_s, 5.0, 20.0):
        page = await browser.render(url, wait_s=wait_s, scroll="none", allow=allow)
        if has_come(page):
            break
    return page
