"""Calls of small tools that do nothing, for tests of the permission gate."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from pydantic import BaseModel

from panpan.core.hooks import ToolCall
from panpan.system.output_store import OutputStore
from panpan.system.paths import PathResolver
from panpan.tools.seen_files import SeenFiles
from panpan.tools.tool import PathUse, Tool, ToolClass, ToolContext
from panpan.types.tool import Output, ToolYield


class Arguments(BaseModel):
    """Whatever a call of these tools may say."""

    command: str = ""
    url: str = ""
    glob: str | None = None
    subagent_type: str = ""
    paths: tuple[str, ...] = ()


class NamedTool(Tool[Arguments]):
    """Has a name and a class, and does nothing."""

    input_model = Arguments

    def __init__(self, name: str, tool_class: ToolClass, *, is_read_only: bool) -> None:
        self.name = name  # type: ignore[misc]  # one class plays several tools
        self.tool_class = tool_class  # type: ignore[misc]
        self._is_read_only = is_read_only

    def is_read_only(self, args: Arguments) -> bool:
        return self._is_read_only

    def title(self, args: Arguments) -> str:
        return args.command

    def path_uses(self, args: Arguments) -> Sequence[PathUse]:
        access = "write" if self.tool_class == "write" else "read"
        return [PathUse(path, access) for path in args.paths]  # type: ignore[arg-type]

    def web_uses(self, args: Arguments, ctx: ToolContext) -> Sequence[str]:
        return [args.url] if args.url else []

    async def run(self, args: Arguments, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output("")


class Calls:
    """Makes calls in one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = PathResolver(root)
        self._outputs = OutputStore(root / ".outputs")

    def of(self, name: str, tool_class: ToolClass, *, is_read_only: bool = False, **arguments: object) -> ToolCall:
        tool = NamedTool(name, tool_class, is_read_only=is_read_only)
        args = Arguments.model_validate(arguments)
        context = ToolContext("id", self.paths, SeenFiles(), self._outputs)
        return ToolCall("id", tool, args, arguments, context)

    def read(self, *paths: str, name: str = "Read", **arguments: object) -> ToolCall:
        return self.of(name, "read", is_read_only=True, paths=paths, **arguments)

    def write(self, *paths: str, name: str = "Edit") -> ToolCall:
        return self.of(name, "write", paths=paths)

    def bash(self, command: str, *, is_read_only: bool = False) -> ToolCall:
        return self.of("Bash", "command", is_read_only=is_read_only, command=command)

    def fetch(self, url: str) -> ToolCall:
        return self.of("WebFetch", "network", is_read_only=True, url=url)
