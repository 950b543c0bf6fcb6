"""DuckDuckGo's page for browsers without scripts, which needs no key.

It is no interface for programs: it often asks for a sign that a person is there, and then it finds nothing. So it is
asked only where the user's settings name it. The library ddgs would open connections of its own; this goes through the
guard like all else.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from panpan.capabilities.web.search.engine import EngineRequest, FoundPage, SearchQuery
from panpan.errors import ToolError

_MAX_QUERY_CHARS = 480
_REDIRECT = "/l/"
"""Path of links that lead over DuckDuckGo; where to stands in `uddg`."""


class DuckDuckGo:
    """The page; there is nothing to set."""

    title = "DuckDuckGo"
    host = "html.duckduckgo.com"
    key = ""
    refused = "it does not want programs just now; wait, or set a key of Tavily, Brave or Exa"

    def request(self, query: SearchQuery) -> EngineRequest:
        asked = urlencode({"q": query.with_operators(_MAX_QUERY_CHARS)})
        return EngineRequest(f"https://{self.host}/html/?{asked}", headers={"accept": "text/html"})

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        from lxml import etree, html  # takes 30 ms

        try:
            tree = html.document_fromstring(answer.decode("utf-8", "replace"))
        except (etree.ParserError, ValueError):
            raise ToolError(f"{self.title} answered with something that is no page") from None
        found = [page for result in _of_class(tree, "result") if (page := _page(result)) is not None]
        if not found and tree.xpath(".//*[contains(@class, 'anomaly-modal')]"):
            raise ToolError(f"{self.title} wants a sign that a person asks; {self.refused}")
        return found


def _page(result: Any) -> FoundPage | None:
    links = _of_class(result, "result__a")
    if not links or "result--ad" in (result.get("class") or ""):
        return None
    snippets = _of_class(result, "result__snippet")
    snippet = snippets[0].text_content() if snippets else ""
    return FoundPage(links[0].text_content(), _target(links[0].get("href") or ""), snippet)


def _of_class(element: Any, name: str) -> list[Any]:
    """Return the elements below that are of a class."""
    found: list[Any] = element.xpath(
        ".//*[contains(concat(' ', normalize-space(@class), ' '), concat(' ', $name, ' '))]", name=name
    )
    return found


def _target(href: str) -> str:
    """Return where a link leads in the end; empty for what leads to an advertisement."""
    try:
        whole = urljoin("https://duckduckgo.com/", href)
        parts = urlsplit(whole)
    except ValueError:
        return ""
    if not (parts.hostname or "").endswith("duckduckgo.com"):
        return whole
    return next(iter(parse_qs(parts.query).get("uddg", ())), "") if parts.path == _REDIRECT else ""
