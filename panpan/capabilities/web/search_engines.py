"""The search engines: how each is asked, and what its answer means."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from panpan.errors import ToolError
from panpan.system.web.domain_lists import DomainLists
from panpan.system.web.url_guard import read_url
from panpan.types.dataclass import dataclass

# An engine opens no connection. It builds the request and parses the answer; `WebSearcher` sends the request, and
# bounds and cleans the results.

JSON = {"accept": "application/json", "content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search: its text, and limits on the results."""

    text: str
    most: int
    """Pages that are wanted; 1 to 20."""
    domains: DomainLists = field(default_factory=DomainLists)
    """Hosts that results may come from; an engine may leave the filter to its caller."""

    def with_operators(self, max_chars: int) -> str:
        """Return the text with `site:` operators for engines that know no other way, as far as there is room."""
        sites = " OR ".join(f"site:{host}" for host in self.domains.allowed)
        parts = [self.text, sites and f"({sites})", *(f"-site:{host}" for host in self.domains.blocked)]
        written = self.text
        for part in filter(None, parts[1:]):
            if len(written) + len(part) < max_chars:
                written = f"{written} {part}"
        return written


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """HTTP request to an engine."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class FoundPage:
    """One result, as the engine wrote it."""

    title: str
    url: str
    snippet: str


class SearchEngine(Protocol):
    """One search engine."""

    title: str
    host: str
    key: str
    """API key; empty if the engine needs none. It must not be in any text."""
    refused: str
    """Advice after an answer with 401 or 403, as the end of a sentence."""

    def request(self, query: SearchQuery) -> EngineRequest:
        """Return the request for a query."""
        ...

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        """Return the results in an answer with status 200, best first; raise `ToolError` if it cannot be read."""
        ...


def rows(answer: bytes, title: str, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the list to which `path` leads; none where it leads nowhere.

    Raises:
        ToolError: It is no JSON object, or what lies there is no list.
    """
    found = _object(answer, title)
    for key in path:
        if found is None:
            return ()
        if not isinstance(found, dict):
            raise ToolError(f"{title} answered with JSON that holds no results")
        found = found.get(key)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise ToolError(f"{title} answered with JSON that holds no results")
    return [row for row in found if isinstance(row, dict)]


def text_of(row: Mapping[str, Any], key: str) -> str:
    """Return a text of an object; empty where there is none."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def complaint(answer: bytes) -> str:
    """Return an engine's error message if it is in one of the usual fields; empty otherwise."""
    try:
        found: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    for _ in range(2):  # detail.error of Tavily, error.detail of Brave, error of Exa
        if isinstance(found, dict):
            found = next((found[key] for key in ("detail", "error", "message") if found.get(key)), "")
    return found if isinstance(found, str) else ""


def _object(answer: bytes, title: str) -> Any:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise ToolError(f"{title} answered with something that is not JSON") from None
    if not isinstance(found, dict):
        raise ToolError(f"{title} answered with JSON that holds no results")
    return found


_BRAVE_QUERY_CHARS = 400
"""Longest query; Brave answers a longer one with 422."""


class _KeyedEngine:
    """An engine that wants a key and answers with a list of JSON objects at `path`."""

    title: str
    host: str
    path: tuple[str, ...] = ("results",)
    snippet_key = "content"

    def __init__(self, key: str, refused: str) -> None:
        self.key = key
        self.refused = refused

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        return _pages(rows(answer, self.title, *self.path), self.snippet_key)

    def _post(self, asked: Mapping[str, object], domains: Mapping[str, Sequence[str]], header: str) -> EngineRequest:
        """Return a request with the domains that are given, and the key in a header such as `x-api-key: KEY`."""
        body = {**asked, **{name: hosts for name, hosts in domains.items() if hosts}}
        name, _, value = header.partition(": ")
        headers = {**JSON, name: value.replace("KEY", self.key)}
        return EngineRequest(f"https://{self.host}/search", "POST", headers, json.dumps(body).encode())


def _pages(found: Sequence[Mapping[str, Any]], snippet_key: str) -> Sequence[FoundPage]:
    return [FoundPage(text_of(row, "title"), text_of(row, "url"), text_of(row, snippet_key)) for row in found]


class Brave(_KeyedEngine):
    """Brave's API."""

    title = "Brave Search"
    host = "api.search.brave.com"
    path = ("web", "results")
    snippet_key = "description"

    def request(self, query: SearchQuery) -> EngineRequest:
        text = query.with_operators(_BRAVE_QUERY_CHARS)
        asked = urlencode({"q": text, "count": query.most, "text_decorations": "false", "result_filter": "web"})
        headers = {"accept": "application/json", "x-subscription-token": self.key}
        return EngineRequest(f"https://{self.host}/res/v1/web/search?{asked}", headers=headers)


_DUCKDUCKGO_QUERY_CHARS = 480
# DuckDuckGo's page for browsers without scripts, which needs no key. It is not an API: it often shows a CAPTCHA, and
# then it finds nothing. So it is used only if the user's settings name it. The library ddgs would open connections of
# its own; this one uses the URL guard.

_REDIRECT = "/l/"
"""Path of links that lead over DuckDuckGo; their target is in `uddg`."""


class DuckDuckGo:
    """The page; there is nothing to set."""

    title = "DuckDuckGo"
    host = "html.duckduckgo.com"
    key = ""
    refused = "it does not want programs just now; wait, or set a key of Tavily, Brave or Exa"

    def request(self, query: SearchQuery) -> EngineRequest:
        asked = urlencode({"q": query.with_operators(_DUCKDUCKGO_QUERY_CHARS)})
        return EngineRequest(f"https://{self.host}/html/?{asked}", headers={"accept": "text/html"})

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        from lxml import etree, html  # takes 30 ms

        try:
            tree = html.document_fromstring(answer.decode("utf-8", "replace"))
        except (etree.ParserError, ValueError):
            raise ToolError(f"{self.title} answered with something that is not a page") from None
        found = [page for result in _of_class(tree, "result") if (page := _html_page(result)) is not None]
        if not found and tree.xpath(".//*[contains(@class, 'anomaly-modal')]"):
            raise ToolError(f"{self.title} wants a sign that a person asks; {self.refused}")
        return found


def _html_page(result: Any) -> FoundPage | None:
    links = _of_class(result, "result__a")
    if not links or "result--ad" in (result.get("class") or ""):
        return None
    snippets = _of_class(result, "result__snippet")
    snippet = snippets[0].text_content() if snippets else ""
    return FoundPage(links[0].text_content(), _target(links[0].get("href") or ""), snippet)


def _of_class(element: Any, name: str) -> list[Any]:
    found: list[Any] = element.xpath(
        ".//*[contains(concat(' ', normalize-space(@class), ' '), concat(' ', $name, ' '))]", name=name
    )
    return found


def _target(href: str) -> str:
    """Return the final target of a link; empty if it leads to an advertisement."""
    try:
        whole = urljoin("https://duckduckgo.com/", href)
        parts = urlsplit(whole)
    except ValueError:
        return ""
    if not (parts.hostname or "").endswith("duckduckgo.com"):
        return whole
    return next(iter(parse_qs(parts.query).get("uddg", ())), "") if parts.path == _REDIRECT else ""


_TEXT_CHARS = 500
"""Characters of each page that are asked for; a result without contents has no text but its title."""


class Exa(_KeyedEngine):
    """Exa's API."""

    title = "Exa"
    host = "api.exa.ai"

    def request(self, query: SearchQuery) -> EngineRequest:
        contents = {"text": {"maxCharacters": _TEXT_CHARS}}
        asked = {"query": query.text, "numResults": query.most, "type": "auto", "contents": contents}
        domains = {"includeDomains": query.domains.allowed, "excludeDomains": query.domains.blocked}
        return self._post(asked, domains, "x-api-key: KEY")

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        return [_page(row) for row in rows(answer, self.title, "results")]


def _page(row: Mapping[str, Any]) -> FoundPage:
    highlights = row.get("highlights")
    texts = [text for text in highlights if isinstance(text, str)] if isinstance(highlights, list) else []
    return FoundPage(text_of(row, "title"), text_of(row, "url"), " … ".join(texts) or text_of(row, "text"))


_SEARXNG_QUERY_CHARS = 1_000


# SearXNG, which anybody can run: https://docs.searxng.org/dev/search_api.html. The user sets the address, which may be
# in their own network; only that one place is opened for it.


class SearXng:
    """One instance.

    Raises:
        ToolError: The address cannot be read.
    """

    title = "SearXNG"
    key = ""
    refused = "its settings.yml must list json under search.formats, and its limiter must let panpan pass"

    def __init__(self, url: str) -> None:
        self.host = read_url(url).host
        self._url = url.partition("?")[0].partition("#")[0].rstrip("/").removesuffix("/search")

    def request(self, query: SearchQuery) -> EngineRequest:
        asked = urlencode({"q": query.with_operators(_SEARXNG_QUERY_CHARS), "format": "json"})
        return EngineRequest(f"{self._url}/search?{asked}", headers={"accept": "application/json"})

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        return _pages(rows(answer, self.title, "results"), "content")


class Tavily(_KeyedEngine):
    """Tavily's API."""

    title = "Tavily"
    host = "api.tavily.com"

    def request(self, query: SearchQuery) -> EngineRequest:
        domains = {"include_domains": query.domains.allowed, "exclude_domains": query.domains.blocked}
        asked = {"query": query.text, "max_results": query.most}
        return self._post(asked, domains, "authorization: Bearer KEY")
