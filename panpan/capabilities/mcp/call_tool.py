"""Calls of tools of servers, under the names that rules, hooks and the log know."""

import json
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches, unified_diff
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from anyio import current_time, move_on_after, to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.mcp.catalogue import KnownTool
from panpan.capabilities.mcp.servers import McpServers
from panpan.core.effects import UNKNOWN, Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.system.text.untrusted import mark_untrusted
from panpan.types.content import Base64Source, DiffDisplay, FileDiff, ImageBlock, ResultContent, TextBlock
from panpan.types.content import text as shown_text
from panpan.types.events import Output, Progress, ToolYield
from panpan.types.llm import ToolDefinition

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from panpan.capabilities.mcp.connection import Connection, PendingCall

_MAX_TITLE_CHARS = 200
MAX_CHARS = 50_000
"""Most characters of a result that the model gets, unless its tool says otherwise; the whole is in a file."""
MOST_CHARS = 500_000
"""Most that a tool may say (`anthropic/maxResultSizeChars`)."""
_MOST_PICTURES = 20
_MAX_SHOWN_CHARS = 2_000
"""Longest result that people see without the marks around it; a longer one is folded as it is."""
_BEGINNINGS = {"image/png": b"\x89PNG\r\n", "image/jpeg": b"\xff\xd8", "image/gif": b"GIF8", "image/webp": b"RIFF"}
"""Types of pictures that models read, each with its first bytes."""
_MAX_PICTURE_CHARS = 7_000_000
"""Longest picture in Base64: providers take 5 MB."""
_MOST_BEGINNINGS = 20


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
    """

    input_model = McpArguments
    timeout_s: ClassVar[float | None] = None
    is_shared: ClassVar[bool] = False

    def __init__(self, known: KnownTool, pending: KnownTool | None, servers: McpServers) -> None:
        self.known = known
        self.pending = pending
        self._servers = servers
        self._entry = servers.entry(known.server)

    @classmethod
    def of(cls, known: KnownTool, servers: McpServers) -> "McpTool":
        """Return the tool under its full name."""
        kind: type[McpTool] = type("McpTool", (cls,), {"name": known.full_name, "__module__": __name__})
        return kind(known, servers.catalogue.pending(known.full_name), servers)

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
        now = McpTool.of(present, self._servers)
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
        call = connection.begin(name, args.written)
        try:
            shown, left_s = "", self._entry.settings.call_s
            while not call.is_over:
                left_s = await self._wait_for_news(call, connection, left_s)
                if call.progress != shown:
                    shown = call.progress
                    yield Progress(f"{shown}\n")
        finally:
            call.cancel()
        if call.error is not None:
            raise ToolError(f"{self.name}: {call.error}", advice=self._advice())
        assert call.result is not None
        most = self.known.meta.get("anthropic/maxResultSizeChars")
        most = min(most, MOST_CHARS) if isinstance(most, int) and most > 0 else MAX_CHARS
        shorten = partial(ctx.outputs.shorten, f"{self.name}-{ctx.tool_use_id}", max_chars=most)
        source = f"{server}/{self.name.removeprefix(f'mcp__{server}__')}"
        output = await to_thread.run_sync(output_of, call.result, source, lambda text: shorten(text=text))
        yield output if not output.is_error else output.with_note(self._advice())

    async def _wait_for_news(self, call: "PendingCall", connection: "Connection", left_s: float) -> float:
        """Wait until a call has news, and return the seconds that are left of its time.

        Raises:
            ToolError: The server is silent, or takes, too long; the time in which the user is asked does not count.
        """
        entry, started_at, is_asking = self._entry, current_time(), connection.questions > 0
        with move_on_after(min(entry.silence_s, left_s)) as scope:
            await call.news.wait()
        if is_asking or connection.questions:
            return left_s
        if scope.cancelled_caught and left_s <= entry.silence_s:
            raise ToolError(f"the call took longer than {entry.settings.call_s:g} s")
        if scope.cancelled_caught:
            raise ToolError(f"the MCP server {entry.name} said nothing for {entry.silence_s:g} s")
        return left_s - (current_time() - started_at)

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


def output_of(result: "CallToolResult", source: str, shorten: Callable[[str], str]) -> Output:
    """Return a result of a server.

    Args:
        result: What the server sent.
        source: Its server and tool, for the mark around its text.
        shorten: Cuts text that is too long, and names the file with the whole.
    """
    words, pictures = words_of(result)
    short = clean_for_terminal(words) if len(words) <= _MAX_SHOWN_CHARS else ""
    marked = mark_untrusted(shorten(words), "mcp-content", source) if words else "[it returned no text]"
    content: tuple[ResultContent, ...] = (TextBlock(text=marked), *pictures)
    return Output(content, shown_text(short) if short else None, is_error=result.is_error)


def words_of(result: "CallToolResult") -> tuple[str, Sequence[ImageBlock]]:
    """Return the text of a result, which is its structured content where it has no other, and its pictures."""
    texts: list[str] = []
    pictures: list[ImageBlock] = []
    for block in result.content:
        for part in parts_of(block.model_dump(mode="json", by_alias=True)):
            if isinstance(part, str):
                texts.append(part)
            elif len(pictures) < _MOST_PICTURES:
                pictures.append(part)
            else:
                texts.append("[a picture, left out: there are too many]")
    if result.structured_content is not None and not any(texts):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    return "\n".join(texts).strip(), pictures


def parts_of(block: Mapping[str, Any]) -> Iterator[str | ImageBlock]:
    """Yield the texts and pictures in a block of content, as a server sends it."""
    match block:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            yield _picture(data, kind)
        case {"type": "audio", "mimeType": str(kind), "data": str(data)}:
            yield f"[a sound of the type {clean_line(kind)}, {len(data) * 3 // 4:,} bytes, left out]"
        case {"type": "resource_link", "uri": str(uri)}:
            yield f"[a resource: {clean_line(str(block.get('title') or block.get('name') or ''))} {clean_line(uri)}]"
        case {"type": "resource", "resource": {"text": str(text), "uri": str(uri)}}:
            yield f"[the resource {clean_line(uri)}]\n{text}"
        case {"type": "resource", "resource": {"blob": str(data), "uri": str(uri)} as resource}:
            yield f"[the resource {clean_line(uri)}]"
            kind = clean_line(str(resource.get("mimeType") or "unknown"))
            yield _picture(data, kind) if kind in _BEGINNINGS else f"[{len(data) * 3 // 4:,} bytes, type {kind}]"
        case _:
            yield f"[something of the type {clean_line(str(block.get('type')))}, left out]"


def _picture(data: str, kind: str) -> str | ImageBlock:
    if kind not in _BEGINNINGS:
        return f"[a picture of the type {clean_line(kind)}, which models do not read]"
    if len(data) > _MAX_PICTURE_CHARS:
        return f"[a picture of {len(data) * 3 // 4:,} bytes, which is too large]"
    try:
        begins = b64decode(data, validate=True)[:16]
    except ValueError:
        return "[a picture that is not Base64, left out]"
    if not begins.startswith(_BEGINNINGS[kind]):
        return f"[a picture that is not of the type {kind} as it says, left out]"
    return ImageBlock(source=Base64Source(media_type=kind, data=data))


class CallToolInput(BaseModel):
    """The tool, and its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Full name, as mcp__SERVER__TOOL")
    arguments: dict[str, Any] = Field(default_factory=dict)


class CallTool(Tool[CallToolInput]):
    """Stands for the tools of servers, which are in no list that the model gets."""

    name = "CallTool"
    input_model = CallToolInput

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    def meant(self, args: CallToolInput) -> tuple[Tool[Any], Mapping[str, Any]] | None:
        catalogue = self._servers.catalogue
        known = catalogue.find(args.name)
        if known is None:
            near = get_close_matches(args.name, catalogue.tools, n=3)
            hint = f"Did you mean {', '.join(near)}?" if near else "Find it with ToolSearch."
            raise ToolError(f"there is no tool {clean_line(args.name)[:200]}. {hint}")
        return McpTool.of(known, self._servers), args.arguments

    def title(self, args: CallToolInput) -> str:
        return args.name

    async def run(self, args: CallToolInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output("it stands for other tools only", is_error=True)
