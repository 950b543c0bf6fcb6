"""WebSearch: ask a search engine.

The rule: what comes back is data of the web, marked as such. Where there is no engine, the model is not told of the
tool, and `panpan doctor` says what would make one.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.web.search_engines import (
    Brave,
    DuckDuckGo,
    Exa,
    FoundPage,
    SearchEngine,
    SearchQuery,
    SearXng,
    Tavily,
    complaint,
)
from panpan.capabilities.web.settings import WebSettings
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.system.web.domain_lists import DomainLists
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.system.web.url_guard import plain_url
from panpan.types.content import SummaryDisplay
from panpan.types.dataclass import dataclass
from panpan.types.events import Output, ToolYield
from panpan.types.pattern import compile_late

# Results are untrusted text. They are cleaned and bounded, contain only addresses that could be fetched, and never
# contain a key, whatever the engine echoes.

MAX_ANSWER_BYTES = 3_000_000
MAX_TITLE_CHARS = 200
MAX_SNIPPET_CHARS = 500
MAX_URL_CHARS = 1_000
_MAX_ERROR_BYTES = 100_000
_MAX_COMPLAINT_CHARS = 200
_MAX_RAW_CHARS = 20_000
"""Characters of one text that are cleaned; the rest is dropped."""
_MAX_REDIRECTS = 3
_TAG = compile_late(r"</?[A-Za-z][^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Pages that a search found."""

    pages: tuple[FoundPage, ...]
    left_out: int
    """Results of hosts that are not wanted, or whose address cannot be asked for."""


class WebSearcher:
    """Asks one engine."""

    def __init__(
        self, engine: SearchEngine, client: GuardedClient, domains: DomainLists, *, timeout_s: float = 30.0
    ) -> None:
        self.title = engine.title
        self.host = engine.host
        self._engine = engine
        self._client = client
        self._domains = domains
        self._timeout_s = timeout_s

    async def aclose(self) -> None:
        """Ask for nothing more."""
        await self._client.aclose()

    async def search(self, text: str, most: int, domains: DomainLists) -> SearchResults:
        """Return at most `most` pages (1 to 20) that the engine finds, of hosts that settings and call allow.

        Raises:
            ToolError: The engine does not answer, or not with results.
        """
        told = DomainLists(
            domains.allowed or self._domains.allowed, tuple(dict.fromkeys((*domains.blocked, *self._domains.blocked)))
        )
        pages = self._engine.pages(await self._answer(SearchQuery(text, most, told)))
        taken: dict[str, FoundPage] = {}
        left_out = 0
        for page in pages:
            address = self._address(page.url, domains)
            if address is None:
                left_out += 1
            elif address not in taken and len(taken) < most:
                taken[address] = self._cleaned(page, address)
        return SearchResults(tuple(taken.values()), left_out)

    async def _answer(self, query: SearchQuery) -> bytes:
        request = self._engine.request(query)
        stream = self._client.stream(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            timeout_s=self._timeout_s,
            max_redirects=_MAX_REDIRECTS,
        )
        async with stream as response:
            if response.status in (200, 202):  # DuckDuckGo's question for a person comes with 202
                return await response.read(MAX_ANSWER_BYTES, within_s=self._timeout_s)
            try:
                said = complaint(await response.read(_MAX_ERROR_BYTES, within_s=self._timeout_s))
            except ToolError:
                said = ""  # the status is enough
            raise ToolError(self._refusal(response.status, response.headers.get("retry-after", ""), said))

    def _refusal(self, status: int, retry_after: str, said: str) -> str:
        text = self._plain(said, _MAX_COMPLAINT_CHARS)
        quoted = f' and says "{text}"' if text else ""
        sentence = f"{self.title} answers with {status}{quoted}"
        if status in (401, 403):
            return f"{sentence}; {self._engine.refused}"
        if status in (429, 432, 433):  # Tavily has two statuses of its own for used-up plans
            wait = f"; try again in {retry_after} s" if retry_after.isdecimal() and len(retry_after) < 7 else ""
            return f"{sentence}: it was asked too often, or what the key may ask for is used up{wait}"
        if status >= 500:
            return f"{sentence}; it has a fault of its own, try again later"
        return f"{sentence}; it cannot be asked like this"

    def _address(self, written: str, domains: DomainLists) -> str | None:
        """Return the address of a result; None where nothing is taken from there."""
        if len(written) > MAX_URL_CHARS:
            return None
        try:
            plain = plain_url(written)
        except ToolError:
            return None
        if self._engine.key and self._engine.key in unquote(plain.url):
            return None
        refused = domains.refusal(plain.host) or self._domains.refusal(plain.host)
        return None if refused else plain.url

    def _cleaned(self, page: FoundPage, address: str) -> FoundPage:
        title = self._plain(page.title, MAX_TITLE_CHARS) or address
        return FoundPage(title, address, self._plain(page.snippet, MAX_SNIPPET_CHARS))

    def _plain(self, text: str, max_chars: int) -> str:
        """Return text on one line without markup, cut, and without the key."""
        import html

        text = clean_line(html.unescape(_TAG.sub("", text[:_MAX_RAW_CHARS])))
        if self._engine.key:
            text = text.replace(self._engine.key, "[redacted]")
        return text if len(text) <= max_chars else f"{text[: max_chars - 1].rstrip()}…"


# An engine without a key or an API is used only if the user's settings say so. If there is no engine, the message says
# how to get one.

HOW = (
    'put a key into {tavily}, {brave} or {exa}, or set web.searxng_url, or web.search = "duckduckgo", which needs no '
    "key"
)


@dataclass(frozen=True, slots=True)
class SearchUnavailable:
    """There is none to ask."""

    why: str
    is_mistake: bool
    """True if the user wants one and would miss it."""


def make_searcher(
    settings: WebSettings, env: Mapping[str, str], network: WebNetwork, user_agent: str
) -> WebSearcher | SearchUnavailable:
    """Return the searcher of a session, or the reason why there is none."""
    engine = choose_engine(settings, env)
    if isinstance(engine, SearchUnavailable):
        return engine
    own = (settings.searxng_url,) if isinstance(engine, SearXng) and settings.searxng_url else ()
    client = GuardedClient(network, user_agent=user_agent, own=own)
    domains = DomainLists.read(settings.allowed_domains, settings.blocked_domains)
    return WebSearcher(engine, client, domains, timeout_s=settings.timeout_s)


def choose_engine(settings: WebSettings, env: Mapping[str, str]) -> SearchEngine | SearchUnavailable:
    """Return the engine that the settings choose, or the reason why there is none."""
    variables = {"tavily": settings.tavily_key_env, "brave": settings.brave_key_env, "exa": settings.exa_key_env}
    match settings.search:
        case "off":
            return SearchUnavailable('web.search is "off"', is_mistake=False)
        case "duckduckgo":
            return DuckDuckGo()
        case "searxng":
            if settings.searxng_url is None:
                return SearchUnavailable('web.search is "searxng"; say in web.searxng_url where it is', is_mistake=True)
            return _searxng(settings.searxng_url)
        case "tavily" | "brave" | "exa" as name:
            engine = _with_key(name, variables[name], env)
            return engine or SearchUnavailable(
                f'web.search is "{name}", and {variables[name]} holds no key', is_mistake=True
            )
        case "auto":
            for name in ("tavily", "brave", "exa"):
                if engine := _with_key(name, variables[name], env):
                    return engine
            if settings.searxng_url is not None:
                return _searxng(settings.searxng_url)
            return SearchUnavailable(HOW.format_map(variables), is_mistake=False)


def _with_key(name: Literal["tavily", "brave", "exa"], variable: str, env: Mapping[str, str]) -> SearchEngine | None:
    key = env.get(variable, "").strip()
    if not key or any(not 0x20 < ord(character) < 0x7F for character in key):
        return None  # an invalid key cannot be sent
    refused = f"look at the key in {variable}"
    match name:
        case "tavily":
            return Tavily(key, refused)
        case "brave":
            return Brave(key, refused)
        case "exa":
            return Exa(key, refused)


def _searxng(url: str) -> SearchEngine | SearchUnavailable:
    try:
        return SearXng(url)
    except ToolError as exc:
        return SearchUnavailable(f"web.searxng_url cannot be used: {exc}", is_mistake=True)


MAX_QUERY_CHARS = 400
"""Brave takes no more."""
MAX_DOMAINS = 20


class WebSearchInput(BaseModel):
    """Arguments of WebSearch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(min_length=2, max_length=MAX_QUERY_CHARS)
    max_results: int = Field(default=8, ge=1, le=20)
    allowed_domains: tuple[str, ...] = Field(default=(), max_length=MAX_DOMAINS, description="Only these hosts")
    blocked_domains: tuple[str, ...] = Field(default=(), max_length=MAX_DOMAINS)


class WebSearchTool(Tool[WebSearchInput]):
    """Search the web.

    Args:
        searcher: Asks the engine of the session, or says why there is none; None where there is no session.
    """

    name = "WebSearch"
    question_template = "Search the web for {title}?"
    input_model = WebSearchInput

    def __init__(self, searcher: WebSearcher | SearchUnavailable | None = None) -> None:
        self._searcher = searcher

    def may_run_in_parallel(self, args: WebSearchInput) -> bool:
        return True

    def title(self, args: WebSearchInput) -> str:
        return args.query

    async def effects(self, args: WebSearchInput, ctx: ToolContext) -> Effects:
        return Effects(asks_web=True)

    async def describe(self, args: WebSearchInput, ctx: ToolContext) -> str:
        return f"the query goes to {self._engine().host}"

    async def run(self, args: WebSearchInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        searcher = self._engine()
        domains = DomainLists.read(args.allowed_domains, args.blocked_domains)
        found = await searcher.search(args.query, args.max_results, domains)
        count = len(found.pages)
        summary = f"{count} result{'' if count == 1 else 's'} of {searcher.title}"
        yield Output(_told(found, searcher), SummaryDisplay(text=summary))

    def _engine(self) -> WebSearcher:
        if not isinstance(self._searcher, WebSearcher):
            why = "there is no session" if self._searcher is None else self._searcher.why
            raise ToolError(f"there is no search engine to ask: {why}")
        return self._searcher


def _told(found: SearchResults, searcher: WebSearcher) -> str:
    from panpan.capabilities.web.web_pages import mark_page

    note = f"[{found.left_out} left out: of hosts that are not wanted, or not public]" if found.left_out else ""
    if not found.pages:
        return "\n".join(filter(None, (f"{searcher.title} found nothing; try other words", note)))
    entries = [
        "\n   ".join(filter(None, (f"{number}. {page.title}", page.url, page.snippet)))
        for number, page in enumerate(found.pages, 1)
    ]
    return "\n".join(filter(None, (mark_page("\n".join(entries), searcher.title), note)))
