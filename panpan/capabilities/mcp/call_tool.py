"""Calls of tools of servers, under the names that rules, hooks and the log know."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import nullcontext
from difflib import get_close_matches, unified_diff
from functools import cached_property
from typing import Any, ClassVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.mcp.definitions import KnownTool
from panpan.capabilities.mcp.long_calls import CallWatch, LongCall
from panpan.capabilities.mcp.results import MAX_RESULT_CHARS, output_for_model
from panpan.capabilities.mcp.servers import McpServers
from panpan.core.background import Background
from panpan.core.effects import UNKNOWN, Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import mark_untrusted
from panpan.types.content import DiffDisplay, FileDiff
from panpan.types.events import Output, Progress, ToolYield
from panpan.types.llm import ToolDefinition

_MAX_TITLE_CHARS = 200
MOST_CHARS = 500_000
"""Longest result that a tool may ask for (`anthropic/maxResultSizeChars`)."""


class McpArguments(BaseModel):
    """Arguments of a server's tool; the server checks them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def written(self) -> Mapping[str, Any]:
        return self.__pydantic_extra__ or {}


class McpTool(Tool[McpArguments]):
    """A tool of a server.

    Args:
        known: Its definition, as the user has accepted it.
        pending: Its present definition, if that is another one.
        servers: The servers.
        background: Takes calls that take long; None: they stay in the foreground, as for a subagent.
    """

    input_model = McpArguments
    is_beside_lists: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = None
    is_shared: ClassVar[bool] = False

    def __init__(
        self, known: KnownTool, pending: KnownTool | None, servers: McpServers, background: Background | None
    ) -> None:
        self.known = known
        self.pending = pending
        self._servers = servers
        self._entry = servers.entry(known.server)
        self._background = background

    @classmethod
    def of(cls, known: KnownTool, servers: McpServers, background: Background | None) -> "McpTool":
        """Return the tool under its full name."""
        kind: type[McpTool] = type("McpTool", (cls,), {"name": known.full_name, "__module__": __name__})
        return kind(known, servers.catalogue.pending(known.full_name), servers, background)

    @cached_property
    def definition(self) -> ToolDefinition:
        text = f"{self.known.description}\n(a tool of the MCP server {self.known.server})".strip()
        return ToolDefinition(self.name, text, dict(self.known.schema))

    @property
    def _is_believed(self) -> bool:
        return self._entry.settings.believe_hints and self.pending is None and self.known.is_read_only

    def meant(self, args: McpArguments) -> tuple[Tool[Any], Mapping[str, Any]] | None:
        """Return the tool with its present definition, if the server has changed it since this one was offered."""
        present = self._servers.catalogue.find(self.name)
        if present is None:
            return None
        now = McpTool.of(present, self._servers, self._background)
        same = (now.known.digest, now.pending and now.pending.digest)
        return None if same == (self.known.digest, self.pending and self.pending.digest) else (now, args.written)

    def may_run_in_parallel(self, args: McpArguments) -> bool:
        return self._is_believed

    async def effects(self, args: McpArguments, ctx: ToolContext) -> Effects:
        return Effects(asks_web=self._entry.transport != "stdio") if self._is_believed else UNKNOWN

    def title(self, args: McpArguments) -> str:
        words = (
            f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in args.written.items()
        )
        return clean_line(", ".join(words))[:_MAX_TITLE_CHARS]

    def question(self, args: McpArguments) -> str:
        return f"Call {self.known.name} of the MCP server {self.known.server}?"

    async def preview(self, args: McpArguments, ctx: ToolContext) -> DiffDisplay | None:
        if self.pending is None:
            return None
        old, new = (_lines(one) for one in (self.known, self.pending))
        lines = list(unified_diff(old, new, lineterm="", n=2))[2:]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        shown = FileDiff(path=f"definition of {self.name}", diff="\n".join(lines), added=added, removed=removed)
        return DiffDisplay(files=(shown,))

    async def run(self, args: McpArguments, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        server, name = self.known.server, (self.pending or self.known).name
        if self._servers.state(server) != "runs":
            yield Progress(f"starting the MCP server {server}\n")
        connection = await self._servers.ready(server)
        await self._require_definition()
        call, background = connection.begin(name, args.written), self._background
        watch = CallWatch(self._entry, connection, call, may_move=background is not None)
        moved: Output | None = None
        movable = background.foreground(ctx.tool_use_id, watch.ask_to_move) if background is not None else nullcontext()
        try:
            with movable:
                while not call.is_over and moved is None:
                    if background is not None and watch.has_to_move:
                        long = LongCall(self.name, server, self._servers, ctx.outputs, ctx.tool_use_id, background)
                        moved = long.move(watch, f"{self.name} {self.title(args)}")
                    elif progress := await watch.news():
                        yield Progress(f"{progress}\n")
        finally:
            if moved is None:
                await watch.give_up()
        if moved is not None:
            yield moved
            return
        if call.error is not None:
            raise ToolError(f"{self.name}: {call.error}", advice=self._advice())
        assert call.result is not None
        most = self.known.meta.get("anthropic/maxResultSizeChars")
        most = min(most, MOST_CHARS) if isinstance(most, int) and most > 0 else MAX_RESULT_CHARS
        output = await output_for_model(call.result, self.name, server, ctx.outputs, ctx.tool_use_id, most)
        yield output if not output.is_error else output.with_note(self._advice())

    async def _require_definition(self) -> None:
        """Refuse a call if the definition is not the one that was decided about; accept that one otherwise."""
        present = self._servers.catalogue.find(self.name)
        if present is None:
            raise ToolError(f"the MCP server {self.known.server} has no tool {self.known.name} any more")
        decided, now = self.pending or self.known, self._servers.catalogue.pending(self.name) or present
        if decided.digest != now.digest:
            raise ToolError(
                f"the MCP server {self.known.server} has changed the tool since you found it, so it was not called",
                advice="call it again: the user is shown the change, and asked",
            )
        if self.pending is not None:
            await to_thread.run_sync(self._servers.accept, self.pending)

    def _advice(self) -> str:
        schema = json.dumps((self.pending or self.known).schema, ensure_ascii=False, separators=(",", ":"))
        return f"the schema of its arguments:\n{mark_untrusted(schema, 'mcp-content', self.known.server)}"


def _lines(tool: KnownTool) -> list[str]:
    """Return a definition in lines, to be compared."""
    rest = {"arguments": tool.schema, "annotations": tool.hints}
    return [
        f"name: {tool.name}",
        *tool.description.splitlines(),
        *json.dumps(rest, indent=2, ensure_ascii=False).splitlines(),
    ]


class CallToolInput(BaseModel):
    """The tool, and its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Full name, as mcp__SERVER__TOOL")
    arguments: dict[str, Any] = Field(default_factory=dict)


class CallTool(Tool[CallToolInput]):
    """Stands for the tools of servers, which are in no list that the model gets."""

    name = "CallTool"
    input_model = CallToolInput
    is_beside_lists: ClassVar[bool] = True

    def __init__(self, servers: McpServers, background: Background | None) -> None:
        self._servers = servers
        self._background = background

    def meant(self, args: CallToolInput) -> tuple[Tool[Any], Mapping[str, Any]] | None:
        catalogue = self._servers.catalogue
        known = catalogue.find(args.name)
        if known is None:
            near = get_close_matches(args.name, catalogue.tools, n=3)
            hint = f"Did you mean {', '.join(near)}?" if near else "Find it with ToolSearch."
            raise ToolError(f"there is no tool {clean_line(args.name)[:200]}. {hint}")
        return McpTool.of(known, self._servers, self._background), args.arguments

    def title(self, args: CallToolInput) -> str:
        return args.name

    async def run(self, args: CallToolInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output("it stands for other tools only", is_error=True)
