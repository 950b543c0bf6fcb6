"""A tool whose answers come from a cassette: nothing is run."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.types.messages import ToolResultMessage
from panpan.types.tool import Output, ToolYield


def taped(tool: Tool[Any], results: Mapping[str, ToolResultMessage], wait: Callable[[], Awaitable[None]]) -> Tool[Any]:
    """Return a tool that looks like `tool` and answers as it was recorded.

    Args:
        tool: The real one.
        results: What was answered, by the ids of the calls.
        wait: Awaited before each answer.
    """
    looks = {
        name: getattr(tool, name) for name in ("name", "input_model", "only_reads", "is_shared", "is_for_subagents")
    }
    made: Tool[Any] = type("TapedTool", (_TapedTool,), looks)(tool, results, wait)
    return made


class _TapedTool(Tool[Any]):
    timeout_s = None

    def __init__(
        self, tool: Tool[Any], results: Mapping[str, ToolResultMessage], wait: Callable[[], Awaitable[None]]
    ) -> None:
        self._tool = tool
        self._results = results
        self._wait = wait

    def runs_beside_others(self, args: Any) -> bool:
        return self._tool.runs_beside_others(args)

    def title(self, args: Any) -> str:
        return self._tool.title(args)

    async def effects(self, args: Any, ctx: ToolContext) -> Effects:
        return Effects()  # nothing is run

    async def run(self, args: Any, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        await self._wait()
        result = self._results.get(ctx.tool_use_id)
        if result is None:
            raise ToolError(f"the cassette has no result of the call {ctx.tool_use_id}")
        yield Output(result.result.content, result.display, is_error=result.is_error)
