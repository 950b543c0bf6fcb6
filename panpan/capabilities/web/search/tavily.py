"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search."""

import json
from collections.abc import Sequence

from panpan.capabilities.web.search.engine import JSON, EngineRequest, FoundPage, SearchQuery
from panpan.capabilities.web.search.json_answer import rows, text_of


class Tavily:
    """The engine.

    Args:
        key: Begins with `tvly-`.
        refused: See `SearchEngine`.
    """

    title = "Tavily"
    host = "api.tavily.com"

    def __init__(self, key: str, refused: str) -> None:
        self.key = key
        self.refused = refused

    def request(self, query: SearchQuery) -> EngineRequest:
        asked: dict[str, object] = {"query": query.text, "max_results": query.most}
        if query.domains.allowed:
            asked["include_domains"] = query.domains.allowed
        if query.domains.blocked:
            asked["exclude_domains"] = query.domains.blocked
        headers = JSON | {"authorization": f"Bearer {self.key}"}
        return EngineRequest(f"https://{self.host}/search", "POST", headers, json.dumps(asked).encode())

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        found = rows(answer, self.title, "results")
        return [FoundPage(text_of(row, "title"), text_of(row, "url"), text_of(row, "content")) for row in found]
