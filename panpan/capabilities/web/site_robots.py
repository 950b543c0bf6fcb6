"""What the sites that a session asks have in their robots.txt; each is asked for it once.

The rule: a site that cannot say what it closes closes everything (RFC 9309, section 2.3.1.4), one that has no rules
nothing.
"""

from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING

import anyio

from panpan.capabilities.web.robots import MAX_BYTES, Robots, product_of
from panpan.capabilities.web.same_site import is_same_site
from panpan.errors import ToolError
from panpan.system.web.guarded_client import GuardedClient
from panpan.system.web.url_guard import Origin, PlainUrl
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.system.web.guarded_response import GuardedResponse

KEPT_S = 86_400.0
"""Seconds after which a robots.txt is read again; RFC 9309, section 2.4, allows a day."""
TRY_AGAIN_S = 30.0
"""Seconds after which a site is asked again that could not say; all who waited for it meanwhile have its answer."""
TIMEOUT_S = 10.0
_MAX_SITES = 500
_SETTING = "the user may set `robots = false` under [web]"


@dataclass(slots=True)
class _Site:
    """One origin."""

    robots: Robots | None = None
    """None: it could not say."""
    why: str = ""
    """Why it could not."""
    unreachable: str = ""
    """Why it could not even be asked."""
    good_until: float = float("-inf")
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class _ElsewhereError(Exception):
    """Ends a request that is sent on to another site."""


class SiteRobots:
    """Says which pages are closed to panpan.

    Args:
        client: The session's.
        user_agent: What servers are told of who asks.
    """

    def __init__(self, client: GuardedClient, user_agent: str) -> None:
        self._client = client
        self._product = product_of(user_agent)
        self._sites: dict[Origin, _Site] = {}

    async def check(self, plain: PlainUrl) -> float:
        """Ask the site for its rules where that was not done, and refuse what they close.

        Returns:
            Seconds that the site wants between two requests.

        Raises:
            ToolError: The page is closed to programs, the site cannot say, or it cannot be asked at all.
        """
        site = self._site(plain)
        async with site.lock:
            if anyio.current_time() >= site.good_until:
                await self._look(plain, site)
                site.good_until = anyio.current_time() + (TRY_AGAIN_S if site.robots is None else KEPT_S)
        if site.unreachable:
            raise ToolError(site.unreachable)
        if site.robots is None:
            raise ToolError(
                f"robots.txt of {plain.host} cannot be read ({site.why}), which closes the site; {_SETTING}"
            )
        path = plain.url.partition("://")[2].partition("#")[0].partition("/")[2]
        if not site.robots.allow(f"/{path}"):
            raise ToolError(
                f"robots.txt of {plain.host} closes this page to programs ({self._product}); take another source, or "
                f"ask the user: {_SETTING}"
            )
        return site.robots.delay_s

    def _site(self, plain: PlainUrl) -> _Site:
        if plain.origin not in self._sites and len(self._sites) >= _MAX_SITES:
            del self._sites[next(iter(self._sites))]
        return self._sites.setdefault(plain.origin, _Site())

    async def _look(self, plain: PlainUrl, site: _Site) -> None:
        def allow(hop: PlainUrl) -> None:
            if not is_same_site(plain, hop):
                raise _ElsewhereError

        site.robots, site.unreachable = None, ""
        address = f"{plain.url.partition('://')[0]}://{_authority(plain)}/robots.txt"
        try:
            async with self._client.stream("GET", address, timeout_s=TIMEOUT_S, max_redirects=5, allow=allow) as answer:
                if answer.status >= 500 or answer.status == 429:
                    site.why = f"status {answer.status}"
                else:
                    text = await _text_of(answer) if answer.status < 300 else ""
                    site.robots = Robots.read(text, self._product)
        except _ElsewhereError:  # it may be taken for one that is not there: RFC 9309, section 2.3.1.2
            site.robots = Robots()
        except ToolError as error:
            site.unreachable = str(error)


async def _text_of(answer: "GuardedResponse") -> str:
    body = bytearray()
    with anyio.move_on_after(TIMEOUT_S):
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > MAX_BYTES:
                    break
    return bytes(body[:MAX_BYTES]).decode("utf-8", "replace")


def _authority(plain: PlainUrl) -> str:
    return plain.url.partition("://")[2].partition("/")[0]
