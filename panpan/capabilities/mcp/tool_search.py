"""The search for tools of servers."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.mcp.servers import McpServers
from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import mark_untrusted
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, Progress, ToolYield

MOST_FOUND = 10
_MAX_FAILURE_CHARS = 300


class ToolSearchInput(BaseModel):
    """Words to find tools by."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1, max_length=2_000)
    max_results: int = Field(default=5, ge=1, le=MOST_FOUND)


class ToolSearch(Tool[ToolSearchInput]):
    """Finds tools of servers, and tells the model their definitions."""

    name = "ToolSearch"
    input_model = ToolSearchInput
    is_beside_lists: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = None
    only_reads: ClassVar[bool] = True
    waits: ClassVar[bool] = True
    stays_in_context: ClassVar[bool] = True

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    async def effects(self, args: ToolSearchInput, ctx: ToolContext) -> Effects:
        return Effects()

    def title(self, args: ToolSearchInput) -> str:
        return args.query

    async def run(self, args: ToolSearchInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        catalogue = self._servers.catalogue
        if any(entry.name not in catalogue.outlines for entry in self._servers.usable):
            yield Progress("waiting for MCP servers that start\n")
        failed = await self._servers.settle()
        found = await to_thread.run_sync(catalogue.search, args.query, args.max_results)
        parts = []
        for server in dict.fromkeys(tool.server for tool in found):
            words = [f"{tool.as_text()}{self._note(tool.full_name)}" for tool in found if tool.server == server]
            if instructions := catalogue.outlines[server].instructions:
                words.append(f"The server says of itself: {instructions}")
            parts.append(mark_untrusted("\n\n".join(words), "mcp-content", server))
        if not found:
            names = ", ".join(sorted(catalogue.outlines)) or "no server"
            parts.append(f"No tool fits. There are {len(catalogue.tools):,} tools of {names}.")
        parts += [f"[{clean_line(one)[:_MAX_FAILURE_CHARS]}]" for one in failed]
        shown = ", ".join(tool.full_name for tool in found) or "no tool"
        yield Output("\n\n".join(parts), SummaryDisplay(text=shown))

    def _note(self, name: str) -> str:
        is_changed = self._servers.catalogue.pending(name) is not None
        return "\n(the server has changed it since; a call asks the user first)" if is_changed else ""
