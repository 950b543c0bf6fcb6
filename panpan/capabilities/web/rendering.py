"""What WebFetch needs of a browser: the page as it is once its scripts have run.

The rule: a browser obeys the same guard as plain HTTP for everything that it loads, and says so where it had to stop.
"""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

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
