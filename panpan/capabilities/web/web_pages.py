"""Pages of the web, for a session and its subagents: fetched over HTTP, or shown in the browser.

The rule: a page is asked for only where its site, the user's lists and the rules of permission let it be, and each
address on the way again; then plain HTTP first, and the browser where that shows nothing.
"""

import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, urljoin

import anyio

from panpan.capabilities.web.browser.browser import PageRenderer, Scroll
from panpan.capabilities.web.fetching import SiteRobots
from panpan.capabilities.web.settings import WebSettings
from panpan.errors import ToolError
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import mark_untrusted
from panpan.system.web.domain_lists import DomainLists, is_same_site
from panpan.system.web.network import GuardedClient
from panpan.system.web.url_guard import PlainUrl, plain_url
from panpan.types.content import ImageBlock
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.capabilities.web.fetching import FetchedPage, ParsedPage, ParseRequest
    from panpan.capabilities.web.page_tree import Obstacle


# A pause between two requests to the same host, so that a fast model does not overload a site. First come, first
# served: all other requests of the session wait, those of subagents too. A cancelled request delays nobody. A pause is
# never shorter than configured, and up to a second longer, so that several panpans that started together do not send
# together.

_MANY_HOSTS = 1_000
"""Number of hosts after which those are forgotten that nobody has to wait for."""


@dataclass(slots=True)
class _Host:
    free_at: float = float("-inf")
    waiting: int = 0
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class HostRateLimiter:
    """Lets requests to one host follow each other slowly.

    `jitter` returns a number from 0 to 1: the seconds that a pause is longer. A pause of 0 makes nothing wait.
    """

    def __init__(
        self,
        pause_s: float,
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._hosts: dict[str, _Host] = {}

    async def turn(self, host: str, *, at_least_s: float = 0.0) -> None:
        """Wait until the host may be asked again, at least as long as it wants itself."""
        place = self._place(host)
        place.waiting += 1
        try:
            async with place.turn:
                now = self._clock()
                at = max(now, place.free_at)
                if at > now:
                    await self._sleep(at - now)
                pause_s = max(self._pause_s, at_least_s)
                place.free_at = at + (pause_s + self._jitter() if pause_s else 0.0)
        finally:
            place.waiting -= 1

    def _place(self, host: str) -> _Host:
        if len(self._hosts) > _MANY_HOSTS:
            now = self._clock()
            self._hosts = {name: one for name, one in self._hosts.items() if one.waiting or one.free_at > now}
        return self._hosts.setdefault(host, _Host())


_FORMS = (
    (compile_late(r"https://github\.com/([^/]+/[^/]+)/blob/([^?#]+)"), r"https://raw.githubusercontent.com/\1/\2"),
    (compile_late(r"(https://gitlab\.com/[^?#]+)/-/blob/([^?#]+)"), r"\1/-/raw/\2"),
    (compile_late(r"(https://huggingface\.co/[^?#]+)/blob/([^?#]+)"), r"\1/raw/\2"),
)


def raw_url(url: str) -> str | None:
    """Return the address of the file alone; None where `url` is no page around one."""
    for page, raw in _FORMS:
        if found := page.match(url):
            return found.expand(raw)
    return None


MAX_SHOWN_CHARS = 500
"""Most characters of an address that is only shown."""


def mark_page(text: str, source: str) -> str:
    """Return text of the web between tags that name where it is from."""
    return mark_untrusted(text, "web-content", to_ascii(source, MAX_SHOWN_CHARS))


def to_ascii(url: str, most: int | None = None) -> str:
    """Return an address that a server chose so that it reads as no sentence of another script, cut after `most`."""
    plain = "".join(char if char.isascii() else quote(char, errors="replace") for char in clean_line(url))
    return plain if most is None or len(plain) <= most else f"{plain[:most]}…"


ParsePage: TypeAlias = "Callable[[ParseRequest], Awaitable[ParsedPage]]"
"""Makes text or a picture of a page, or raises ToolError."""

SCRIPTS_S = 3.0
"""Seconds that most pages need to load their content by scripts."""
_FETCHED_AGAIN = "it was fetched again, and may have changed since the piece before"
_KEPT_PAGES = 4
"""Pages that are kept, so that further pieces are read without another request."""


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A page to fetch, and how."""

    url: str
    wait_s: float = 0.0
    scroll: Scroll = "none"
    wants_all: bool = False
    pages: str | None = None
    """Page range of a PDF, such as "3-7"."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as it came."""

    url: str
    """Final address, after redirects."""
    status: int
    what: str
    """Description: its media type, or that a browser showed it."""
    title: str
    text: str
    """Text of the page without control characters."""
    notes: tuple[str, ...] = ()
    """Notes for the reader, such as parts that were left out or failed."""
    obstacle: "Obstacle | None" = None
    picture: ImageBlock | None = None


class WebPages:
    """Asks for pages.

    Args:
        client: The session's.
        settings: The user's.
        user_agent: User agent that servers are sent.
        stricter_rule: Returns the rule of permission, in words, that speaks against a second address and not against
            the first, which was asked for; None where there is none.
        renderer: Opens pages in a browser; None: there is none.
        pace: Keeps requests apart; None: as the settings say.
        scripts_s: Seconds given to the scripts of a page in the browser where nothing else was asked for.
        parse: Makes text of a page; None: in a process without a sandbox.
    """

    def __init__(
        self,
        client: GuardedClient,
        settings: WebSettings,
        user_agent: str,
        *,
        stricter_rule: Callable[[str, str], str | None] = lambda *_: None,
        renderer: PageRenderer | None = None,
        pace: HostRateLimiter | None = None,
        scripts_s: float = SCRIPTS_S,
        parse: "ParsePage | None" = None,
    ) -> None:
        self._client = client
        self._timeout_s = settings.timeout_s
        self._lists = DomainLists.read(settings.allowed_domains, settings.blocked_domains)
        self._robots = SiteRobots(client, user_agent) if settings.robots else None
        self._pace = pace or HostRateLimiter(settings.pace_s)
        self._new_restriction = stricter_rule
        self._renderer = renderer
        self._parse = parse or parse_sandboxed(CommandSandbox())
        self._scripts_s = scripts_s
        self._kept: OrderedDict[FetchRequest, WebPage] = OrderedDict()

    async def page(self, request: FetchRequest, *, may_be_kept: bool = False) -> WebPage:
        """Return a page; raise `ToolError` if it cannot be had."""
        if may_be_kept and request in self._kept:
            return self._kept[request]
        page = self._kept[request] = await self._page(request)
        if len(self._kept) > _KEPT_PAGES:
            self._kept.popitem(last=False)
        return replace(page, notes=(*page.notes, _FETCHED_AGAIN)) if may_be_kept else page

    def plain(self, url: str) -> PlainUrl:
        """Return the parts of an address that may be asked for.

        Raises:
            ToolError: It may not be asked for, or is none.
        """
        return self._client.plain(url)

    async def _page(self, request: FetchRequest) -> WebPage:
        from panpan.capabilities.web.fetching import RedirectCircleError, fetch_page  # not every session reads pages

        plain = self.plain(request.url)
        if request.wait_s or request.scroll != "none":
            return await self._rendered(request, plain)
        try:
            answer = await fetch_page(self._client, request.url, partial(self._check, plain), timeout_s=self._timeout_s)
        except RedirectCircleError as error:
            return await self._rendered_instead(request, plain, error)
        page = await _read(answer, request, self._parse)
        if answer.kind != "html" or page.obstacle is None or not page.obstacle.may_yield_to_a_browser:
            return page
        try:
            return await self._rendered(request, self.plain(answer.url))
        except ToolError as error:
            return replace(page, notes=(*page.notes, f"a browser may show more, but {error}"))

    async def _rendered_instead(self, request: FetchRequest, plain: PlainUrl, failure: ToolError) -> WebPage:
        try:
            return await self._rendered(request, plain)
        except ToolError as error:
            raise ToolError(f"{failure}; a browser keeps them, but {error}") from error

    async def _check(self, wanted: PlainUrl, plain: PlainUrl) -> None:
        """Refuse an address that is not to be asked for; wait until the host that was asked for may be asked again."""
        self._refuse_strangers(wanted, plain)
        pause_s = await self._robots.check(plain) if self._robots is not None else 0.0
        if plain == wanted:
            await self._pace.turn(plain.host, at_least_s=pause_s)

    def _refuse_strangers(self, wanted: PlainUrl, plain: PlainUrl) -> None:
        if (refusal := self._lists.refusal(plain.host)) is not None:
            raise ToolError(f"{refusal} by the user's settings (allowed_domains, blocked_domains under [web])")
        if not is_same_site(wanted, plain):
            raise ToolError(
                f"{wanted.host} redirects to {plain.host}, which nobody was asked about",
                advice=f"to go on, call WebFetch with {to_ascii(plain.url)}",
            )
        if wanted.scheme == "https" and plain.scheme == "http":
            raise ToolError(
                f"{wanted.host} redirects from https to http, where anybody on the way could change the page"
            )
        if (rule := self._new_restriction(wanted.url, plain.url)) is not None:
            raise ToolError(f"{wanted.host} redirects to {plain.host}, which a rule covers: {rule}")

    async def _rendered(self, request: FetchRequest, plain: PlainUrl) -> WebPage:
        from panpan.capabilities.web.fetching import FetchedPage, ParseRequest

        wanted = self.plain(request.url)
        if self._renderer is None:
            raise ToolError("there is no browser in this session")
        self._refuse_strangers(wanted, plain)
        await self._check(plain, plain)
        allow = partial(self._refuse_strangers, wanted)
        shown = await self._renderer.render(
            plain.url, wait_s=request.wait_s or self._scripts_s, scroll=request.scroll, allow=allow
        )
        if (ended := self.plain(shown.url)) != plain:
            self._refuse_strangers(wanted, ended)
            await self._check(plain, ended)
        fetched = FetchedPage(
            shown.url, shown.status, {}, "html", "text/html", "utf-8", shown.html.encode("utf-8", "replace")
        )
        job = ParseRequest(fetched, request.url, request.wants_all, is_rendered=True)
        page = _html_page(fetched, "shown by a browser", await self._parse(job))
        return replace(page, title=shown.title or page.title, notes=(*page.notes, *shown.notes))


def parse_sandboxed(sandbox: CommandSandbox) -> ParsePage:
    """Return a function that parses pages in a process in the sandbox."""

    async def parse(request: "ParseRequest") -> "ParsedPage":
        from panpan.capabilities.web.fetching import parse_page

        return await parse_page(request, sandbox)

    return parse


async def _read(answer: "FetchedPage", request: FetchRequest, parse: ParsePage) -> WebPage:
    from panpan.capabilities.web.fetching import ParsedPage, ParseRequest
    from panpan.capabilities.web.page_tree import status_obstacle

    what = answer.media_type or "of no type"
    job = ParseRequest(answer, request.url, request.wants_all, request.pages)
    parsed = ParsedPage() if answer.kind == "other" else await parse(job)
    notes = [f"only its first {len(answer.body):,} bytes were read"] if answer.is_cut else []
    match answer.kind:
        case "html":
            page = _html_page(answer, what, parsed)
            return replace(page, notes=(*page.notes, *notes))
        case "pdf":
            what = "PDF"
            if parsed.scans:
                notes.append(f"pages {', '.join(map(str, parsed.scans))} hold pictures and no text")
        case "image":
            what = parsed.what
        case "other":
            size = f", {answer.headers['content-length']} bytes" if "content-length" in answer.headers else ""
            notes.append(f"it is a file of another kind ({what}{size}), which was not read; to have it, download it")
        case "text":
            pass
    obstacle = status_obstacle(answer.status, answer.headers)
    return WebPage(answer.url, answer.status, what, "", parsed.text, tuple(notes), obstacle, parsed.picture)


def _html_page(answer: "FetchedPage", what: str, parsed: "ParsedPage") -> WebPage:
    notes: list[str] = []
    if parsed.extent != "all" and parsed.text:
        left_out = "what is around the article" if parsed.extent == "article" else "navigation"
        notes.append(f"{left_out} was left out; raw=true gives all")
    if parsed.is_cut:
        notes.append(f"only the first {len(parsed.text):,} characters of its text are here")
    if parsed.sends_on_to:
        with suppress(ValueError, ToolError):  # leave out a bad address: it could say anything
            onward = plain_url(urljoin(answer.url, parsed.sends_on_to)).url
            notes.append(f"browsers go on from here to {to_ascii(onward, MAX_SHOWN_CHARS)}")
    if (raw := raw_url(answer.url)) is not None:
        notes.append(f"the file alone is at {to_ascii(raw, MAX_SHOWN_CHARS)}")
    return WebPage(answer.url, answer.status, what, parsed.title, parsed.text, tuple(notes), parsed.obstacle)
