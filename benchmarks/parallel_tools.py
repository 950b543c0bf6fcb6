"""Eight read-only tools that sleep for half a second, in one message."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio
from pydantic import BaseModel

from benchmarks.figure import Figure
from panpan.core.tool import SeenFiles, Tool, ToolContext
from panpan.core.tool_executor import ToolExecutor
from panpan.permissions.folder_gate import DenyingAsker
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.content import ToolUseBlock
from panpan.types.events import Output, ToolYield
from panpan.types.messages import ToolResultMessage

TITLE = "eight half-second tools in one message"

CALLS = 8
SLEEP_S = 0.5


class NoInput(BaseModel):
    """No arguments."""


class SleepTool(Tool[NoInput]):
    """Tool that sleeps."""

    name = "Sleep"
    input_model = NoInput
    tool_class = "read"

    def is_read_only(self, args: NoInput) -> bool:
        return True

    def title(self, args: NoInput) -> str:
        return ""

    async def run(self, args: NoInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        await anyio.sleep(SLEEP_S)
        yield Output("slept")


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        times = [anyio.run(_one_message, Path(name).resolve()) for _ in range(runs)]
    yield Figure("wall time", "s", times, at_most=0.6)


async def _one_message(root: Path) -> float:
    """Return the seconds that the eight calls took together."""
    context = ToolContext("", PathResolver(root), SeenFiles(), OutputStore(root))
    uses = [ToolUseBlock(id=f"toolu_{number}", name="Sleep", input={}) for number in range(CALLS)]
    results = 0
    async with ToolExecutor({"Sleep": SleepTool()}, context, ask=DenyingAsker()) as executor:
        started_at = perf_counter()
        async with aclosing(executor.run(uses)) as events:
            async for event in events:
                results += isinstance(event, ToolResultMessage) and not event.result.is_error
        took_s = perf_counter() - started_at
    assert results == CALLS
    return took_s
