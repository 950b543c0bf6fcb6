"""WebSearch: ask a search engine.

The rule: what comes back is data of the web, marked as such. Where there is no engine, the model is not told of the
tool, and `panpan doctor` says what would make one.
"""

from collections.abc import AsyncGenerator

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.web.search.choice import Found, NoEngine, WebSearcher
from panpan.capabilities.web.web_pages import marked
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.web.domain_lists import DomainLists
from panpan.types.display import SummaryDisplay
from panpan.types.tool import Output, ToolYield

MAX_QUERY_CHARS = 400
"""Brave takes no more."""
MAX_DOMAINS = 20


class WebSearchInput(BaseModel):
    """What the model may ask of WebSearch."""

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
    input_model = WebSearchInput

    def __init__(self, searcher: WebSearcher | NoEngine | None = None) -> None:
        self._searcher = searcher

    def runs_beside_others(self, args: WebSearchInput) -> bool:
        return True

    def title(self, args: WebSearchInput) -> str:
        return args.query

    async def effects(self, args: WebSearchInput, ctx: ToolContext) -> Effects:
        return Effects(asks_web=True)

    async def explained(self, args: WebSearchInput, ctx: ToolContext) -> str:
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


def _told(found: Found, searcher: WebSearcher) -> str:
    note = f"[{found.left_out} left out: of hosts that are not wanted, or not public]" if found.left_out else ""
    if not found.pages:
        return "\n".join(filter(None, (f"{searcher.title} found nothing; try other words", note)))
    entries = [
        "\n   ".join(filter(None, (f"{number}. {page.title}", page.url, page.snippet)))
        for number, page in enumerate(found.pages, 1)
    ]
    return "\n".join(filter(None, (marked("\n".join(entries), searcher.title), note)))
