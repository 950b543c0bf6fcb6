"""Tools that sleep, fail or count, for tests of the loop and the executor."""

from collections.abc import AsyncGenerator

import anyio
from pydantic import BaseModel

from panpan.core.effects import UNKNOWN, Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.types.events import Output, Progress, ToolYield
from panpan.types.llm import ToolDefinition


class SleepInput(BaseModel):
    seconds: float = 0.0


class FakeTool(Tool[SleepInput]):
    """Sleeps, and records how many of its calls ran at once, their order, and which were cut short."""

    name = "Look"
    input_model = SleepInput

    def __init__(self, name: str = "Look", *, is_read_only: bool = True, log: list[str] | None = None) -> None:
        self.name = name  # type: ignore[misc]  # one class is several tools
        self.log = log if log is not None else []
        self.running = 0
        self.peak = 0
        self.cut_short = 0
        self._is_read_only = is_read_only

    @property
    def definition(self) -> ToolDefinition:  # type: ignore[override]  # fakes have no text beside them
        return ToolDefinition(self.name, "a fake", {"type": "object"})

    @property
    def told(self) -> Effects:
        return Effects() if self._is_read_only else UNKNOWN

    def may_run_in_parallel(self, args: SleepInput) -> bool:
        return self._is_read_only

    async def effects(self, args: SleepInput, ctx: ToolContext) -> Effects:
        return self.told

    def title(self, args: SleepInput) -> str:
        return f"{args.seconds}"

    async def run(self, args: SleepInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        self.running += 1
        self.peak = max(self.peak, self.running)
        self.log.append(f"{self.name} {ctx.tool_use_id} begins")
        try:
            yield Progress(f"{ctx.tool_use_id} is at work")
            await anyio.sleep(args.seconds)
            self.log.append(f"{self.name} {ctx.tool_use_id} ends")
            yield Output(f"{self.name} {ctx.tool_use_id} done")
        except BaseException:
            self.cut_short += 1
            raise
        finally:
            self.running -= 1


class FileInput(SleepInput):
    path: str = ""


class FileTool(FakeTool):
    """Sleeps as if it read or changed the file at `path`, and nothing else."""

    input_model = FileInput

    def __init__(self, name: str, *, changes: bool, log: list[str] | None = None) -> None:
        super().__init__(name, is_read_only=not changes, log=log)
        self.notes_changes = changes  # type: ignore[misc]

    async def effects(self, args: SleepInput, ctx: ToolContext) -> Effects:
        assert isinstance(args, FileInput)
        return Effects(reads=(args.path,), writes=(args.path,) if self.notes_changes else ())


class FailingTool(FakeTool):
    """Raises a given error."""

    def __init__(self, error: Exception, name: str = "Fail") -> None:
        super().__init__(name)
        self.error = error

    async def run(self, args: SleepInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Progress("about to fail")
        raise self.error


class LeavingTool(FakeTool):
    """Notes a text for a call that is cut short."""

    async def run(self, args: SleepInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        try:
            yield Progress("half is done")
            await anyio.sleep(args.seconds)
            yield Output("all is done")
        except BaseException:
            ctx.note_unfinished("By then half was done.")
            raise


def looking(log: list[str] | None = None) -> FakeTool:
    return FakeTool("Look", log=log)


def changing(log: list[str] | None = None) -> FakeTool:
    return FakeTool("Change", is_read_only=False, log=log)


def refusing() -> FailingTool:
    return FailingTool(ToolError("it is not there; look elsewhere"))
