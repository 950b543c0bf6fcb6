"""SearXNG, which anybody can run: https://docs.searxng.org/dev/search_api.html.

The address is the user's and may lead into his own network; that one place is opened for it, and no other.
"""

from collections.abc import Sequence
from urllib.parse import urlencode

from panpan.capabilities.web.search.engine import EngineRequest, FoundPage, SearchQuery
from panpan.capabilities.web.search.json_answer import rows, text_of
from panpan.system.web.url_guard import read_url

_MAX_QUERY_CHARS = 1_000


class SearXng:
    """One instance.

    Args:
        url: Where it is, as the user's settings name it.

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
        asked = urlencode({"q": query.with_operators(_MAX_QUERY_CHARS), "format": "json"})
        return EngineRequest(f"{self._url}/search?{asked}", headers={"accept": "application/json"})

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        found = rows(answer, self.title, "results")
        return [FoundPage(text_of(row, "title"), text_of(row, "url"), text_of(row, "content")) for row in found]
