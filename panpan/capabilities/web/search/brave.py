"""Brave Search: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started."""

from collections.abc import Sequence
from urllib.parse import urlencode

from panpan.capabilities.web.search.engine import EngineRequest, FoundPage, SearchQuery
from panpan.capabilities.web.search.json_answer import rows, text_of

_MAX_QUERY_CHARS = 400
"""More is answered with 422."""


class Brave:
    """The engine.

    Args:
        key: The token of a subscription.
        refused: See `SearchEngine`.
    """

    title = "Brave Search"
    host = "api.search.brave.com"

    def __init__(self, key: str, refused: str) -> None:
        self.key = key
        self.refused = refused

    def request(self, query: SearchQuery) -> EngineRequest:
        text = query.with_operators(_MAX_QUERY_CHARS)
        asked = urlencode({"q": text, "count": query.most, "text_decorations": "false", "result_filter": "web"})
        headers = {"accept": "application/json", "x-subscription-token": self.key}
        return EngineRequest(f"https://{self.host}/res/v1/web/search?{asked}", headers=headers)

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        found = rows(answer, self.title, "web", "results")
        return [FoundPage(text_of(row, "title"), text_of(row, "url"), text_of(row, "description")) for row in found]
