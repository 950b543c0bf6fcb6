"""Exa: https://exa.ai/docs/reference/search."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from panpan.capabilities.web.search.engine import JSON, EngineRequest, FoundPage, SearchQuery
from panpan.capabilities.web.search.json_answer import rows, text_of

_TEXT_CHARS = 500
"""Of each page; a result without contents has no words but its title."""


class Exa:
    """The engine.

    Args:
        key: Of an account.
        refused: See `SearchEngine`.
    """

    title = "Exa"
    host = "api.exa.ai"

    def __init__(self, key: str, refused: str) -> None:
        self.key = key
        self.refused = refused

    def request(self, query: SearchQuery) -> EngineRequest:
        asked: dict[str, object] = {
            "query": query.text,
            "numResults": query.most,
            "type": "auto",
            "contents": {"text": {"maxCharacters": _TEXT_CHARS}},
        }
        if query.domains.allowed:
            asked["includeDomains"] = query.domains.allowed
        if query.domains.blocked:
            asked["excludeDomains"] = query.domains.blocked
        headers = JSON | {"x-api-key": self.key}
        return EngineRequest(f"https://{self.host}/search", "POST", headers, json.dumps(asked).encode())

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        return [_page(row) for row in rows(answer, self.title, "results")]


def _page(row: Mapping[str, Any]) -> FoundPage:
    highlights = row.get("highlights")
    texts = [text for text in highlights if isinstance(text, str)] if isinstance(highlights, list) else []
    return FoundPage(text_of(row, "title"), text_of(row, "url"), " … ".join(texts) or text_of(row, "text"))
