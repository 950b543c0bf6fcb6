"""What a search engine is: how it is asked, and what its answer means.

The rule: an engine opens no connection. It says what to ask for and reads what came back; `web_searcher.py` does the
asking, bounds it and cleans it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from panpan.capabilities.web.domain_lists import DomainLists
from panpan.types.dataclass import dataclass

JSON = {"accept": "application/json", "content-type": "application/json"}
"""Headers of requests that send and want JSON."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is looked for."""

    text: str
    most: int
    """Pages that are wanted; 1 to 20."""
    domains: DomainLists = field(default_factory=DomainLists)
    """Of which hosts; an engine may leave this to whoever asks it."""

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
    """What to send to an engine."""

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
    """As people call it."""
    host: str
    """Where requests go."""
    key: str
    """What it asks for to let itself be asked; empty: nothing. It must not be in any text."""
    refused: str
    """What to do where it answers 401 or 403, as the end of a sentence."""

    def request(self, query: SearchQuery) -> EngineRequest:
        """Return what to send."""
        ...

    def pages(self, answer: bytes) -> Sequence[FoundPage]:
        """Return what an answer with status 200 holds, best first.

        Raises:
            ToolError: It is no such answer.
        """
        ...
