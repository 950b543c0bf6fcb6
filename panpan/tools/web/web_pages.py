"""Pages of the web, for a session and its subagents: how they are asked for, and what came of it.

The rule: a page is asked for only where its site, the user's lists and the rules of permission let it be, and each
address on the way again; then plain HTTP first, and the browser where that shows nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import urljoin

from anyio import fail_after, to_thread

from panpan.config.settings import WebSettings
from panpan.errors import ToolError
from panpan.system.url_guard import PlainUrl, plain_url
from panpan.system.web.guarded_client import GuardedClient
from panpan.tools.web.domain_lists import DomainLists
from panpan.tools.web.pace import Pace
from panpan.tools.web.rendering import PageRenderer, Scroll
from panpan.tools.web.same_site import is_same_site
from panpan.tools.web.site_robots import SiteRobots
from panpan.types.content import ImageBlock
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.tools.web.fetching import Fetched
    from panpan.tools.web.page_kind import Obstacle
    from panpan.tools.web.page_text import PageText

_P = ParamSpec("_P")
_T = TypeVar("_T")

SCRIPTS_S = 3.0
"""As long as most pages need that load what they show."""
READ_S = 60.0
"""Seconds that may be spent on making text of what came."""
_KEPT_PAGES = 4
"""Of which further pieces can be read without asking for them again."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Which page is wanted, and how."""

    url: str
    wait_s: float = 0.0
    scroll: Scroll = "none"
    wants_all: bool = False
    pages: str | None = None
    """Of a PDF, such as "3-7"."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as it came."""

    url: str
    """Where it came from, after redirects."""
    status: int
    what: str
    """What it is, in words: its media type, or that a browser showed it."""
    title: str
    text: str
    notes: tuple[str, ...] = ()
    """What a reader has to know: what was left out, what failed."""
    obstacle: "Obstacle | None" = None
    picture: ImageBlock | None = None


class WebPages:
    """Asks for pages.

    Args:
        client: The session's.
        settings: The user's.
        user_agent: What servers are told of who asks.
        new_restriction: Returns the rule of permission, in words, that speaks against a second address and not against
            the first, which was asked for; None where there is none.
        renderer: Opens pages in a browser; None: there is none.
        pace: Keeps requests apart; None: as the settings say.
        scripts_s: Seconds given to the scripts of a page in the browser where nothing else was asked for.
    """

    def __init__(
        self,
        client: GuardedClient,
        settings: WebSettings,
        user_agent: str,
        *,
        new_restriction: Callable[[str, str], str | None] = lambda *_: None,
        renderer: PageRenderer | None = None,
        pace: Pace | None = None,
        scripts_s: float = SCRIPTS_S,
    ) -> None:
        self._client = client
        self._timeout_s = settings.timeout_s
        self._lists = DomainLists.read(settings.allowed_domains, settings.blocked_domains)
        self._robots = SiteRobots(client, user_agent) if settings.robots else None
        self._pace = pace or Pace(settings.pace_s)
        self._new_restriction = new_restriction
        self._renderer = renderer
        self._scripts_s = scripts_s
        self._kept: OrderedDict[Wish, WebPage] = OrderedDict()

    async def page(self, wish: Wish, *, may_be_kept: bool = False) -> WebPage:
        """Return a page.

        Args:
            wish: Which one.
            may_be_kept: Whether one that was read before will do.

        Raises:
            ToolError: It cannot be had; says why.
        """
        if may_be_kept and wish in self._kept:
            return self._kept[wish]
        page = await self._page(wish)
        self._kept[wish] = page
        if len(self._kept) > _KEPT_PAGES:
            self._kept.popitem(last=False)
        return page

    async def _page(self, wish: Wish) -> WebPage:
        from panpan.tools.web.fetching import (
            RedirectCircleError,
            fetched,
        )  # what follows is for sessions that read pages

        plain = plain_url(wish.url)
        if wish.wait_s or wish.scroll != "none":
            await self._check(plain, plain)
            return await self._rendered(wish, wish.url)
        try:
            answer = await fetched(self._client, wish.url, partial(self._check, plain), timeout_s=self._timeout_s)
        except RedirectCircleError as error:
            return await self._rendered_instead(wish, error)
        page = await _read(answer, wish)
        if answer.kind != "html" or page.obstacle is None or not page.obstacle.may_yield_to_a_browser:
            return page
        try:
            return await self._rendered(wish, answer.url)
        except ToolError as error:
            return replace(page, notes=(*page.notes, f"a browser may show more, but {error}"))

    async def _rendered_instead(self, wish: Wish, failure: ToolError) -> WebPage:
        try:
            return await self._rendered(wish, wish.url)
        except ToolError as error:
            raise ToolError(f"{failure}; a browser keeps them, but {error}") from error

    async def _check(self, wanted: PlainUrl, plain: PlainUrl) -> None:
        """Refuse an address that is not to be asked for; wait until its host may be asked again."""
        self._refuse_strangers(wanted, plain)
        if self._robots is not None:
            await self._robots.check(plain)
        if plain == wanted:
            await self._pace.turn(plain.host)

    def _refuse_strangers(self, wanted: PlainUrl, plain: PlainUrl) -> None:
        if (refusal := self._lists.refusal(plain.host)) is not None:
            raise ToolError(f"{refusal} by the user's settings (allowed_domains, blocked_domains under [web])")
        if not is_same_site(wanted, plain):
            raise ToolError(
                f"{wanted.host} sends on to {plain.host}, which nobody was asked about; to go on, call WebFetch with "
                f"{plain.url}"
            )
        if (rule := self._new_restriction(wanted.url, plain.url)) is not None:
            raise ToolError(f"{wanted.host} sends on to {plain.host}, of which a rule speaks: {rule}")

    async def _rendered(self, wish: Wish, url: str) -> WebPage:
        from panpan.tools.web.page_kind import obstacle_of
        from panpan.tools.web.page_text import page_text

        if self._renderer is None:
            raise ToolError("there is no browser in this session")
        shown = await self._renderer.render(url, wait_s=wish.wait_s or self._scripts_s, scroll=wish.scroll)
        self._refuse_strangers(plain_url(wish.url), plain_url(shown.url))
        text = await _in_thread(page_text, shown.html, shown.url, wants_all=wish.wants_all)
        obstacle = obstacle_of(
            shown.status, {}, text.facts, shown.html, asked=wish.url, url=shown.url, is_rendered=True
        )
        page = _html_page(shown.url, shown.status, "shown by a browser", text, obstacle)
        return replace(page, title=shown.title or page.title, notes=(*page.notes, *shown.notes))


async def _read(answer: "Fetched", wish: Wish) -> WebPage:
    """Return what came, as a model can read it."""
    from panpan.tools.files.read_image import prepare_image
    from panpan.tools.files.read_pdf import read_pdf
    from panpan.tools.web.page_encoding import decoded
    from panpan.tools.web.page_kind import obstacle_of, status_obstacle
    from panpan.tools.web.page_text import page_text

    what = answer.media_type or "of no type"
    obstacle = status_obstacle(answer.status, answer.headers)
    cut = (f"only its first {len(answer.body):,} bytes were read",) if answer.is_cut else ()
    match answer.kind:
        case "html":
            html = await _in_thread(decoded, answer.body, answer.charset)
            text = await _in_thread(page_text, html, answer.url, wants_all=wish.wants_all)
            obstacle = obstacle_of(answer.status, answer.headers, text.facts, html, asked=wish.url, url=answer.url)
            page = _html_page(answer.url, answer.status, what, text, obstacle)
            return replace(page, notes=(*page.notes, *cut))
        case "text":
            plain = await _in_thread(decoded, answer.body, answer.charset)
            return WebPage(answer.url, answer.status, what, "", plain, cut, obstacle)
        case "pdf":
            pdf = await _in_thread(read_pdf, answer.body, wish.pages, answer.url)
            notes = (f"pages {', '.join(map(str, pdf.scans))} hold pictures and no text",) if pdf.scans else ()
            return WebPage(answer.url, answer.status, "PDF", "", pdf.text, notes, obstacle)
        case "image":
            picture = await _in_thread(prepare_image, answer.body, answer.url)
            return WebPage(answer.url, answer.status, picture.description, "", "", (), obstacle, picture.block)
        case "other":
            size = f", {answer.headers['content-length']} bytes" if "content-length" in answer.headers else ""
            note = f"it is a file of another kind ({what}{size}), which was not read; to have it, download it"
            return WebPage(answer.url, answer.status, what, "", "", (note,), obstacle)


def _html_page(url: str, status: int, what: str, text: "PageText", obstacle: "Obstacle | None") -> WebPage:
    from panpan.tools.web.raw_form import raw_form

    notes: list[str] = []
    if text.extent != "all" and text.markdown:
        left_out = "what stands around the article" if text.extent == "article" else "navigation"
        notes.append(f"{left_out} was left out; raw=true gives all")
    if text.facts.sends_on_to:
        with suppress(ValueError):  # brackets that are no address
            notes.append(f"browsers go on from here to {urljoin(url, text.facts.sends_on_to)}")
    if (raw := raw_form(url)) is not None:
        notes.append(f"the file alone is at {raw}")
    return WebPage(url, status, what, text.facts.title, text.markdown, tuple(notes), obstacle)


async def _in_thread(work: Callable[_P, _T], *args: _P.args, **more: _P.kwargs) -> _T:
    try:
        with fail_after(READ_S):
            return await to_thread.run_sync(partial(work, *args, **more), abandon_on_cancel=True)
    except TimeoutError:
        raise ToolError(f"what came could not be made text within {READ_S:g} s") from None
