"""Calls of small tools that do nothing, for tests of the permission gate."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel

from panpan.core.effects import Agent, Command, Effects
from panpan.core.hooks import ToolCall
from panpan.core.tool import SeenFiles, Tool, ToolContext
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.events import Output, ToolYield


class Arguments(BaseModel):
    """Whatever a call of these tools may say."""

    command: str = ""
    url: str = ""
    glob: str | None = None
    subagent_type: str = ""
    paths: tuple[str, ...] = ()


Kind: TypeAlias = Literal["read", "write", "command", "network"]


class NamedTool(Tool[Arguments]):
    """Has a name and says what it does, and does nothing."""

    input_model = Arguments

    def __init__(self, name: str, kind: Kind, *, is_read_only: bool) -> None:
        self.name = name  # type: ignore[misc]  # one class plays several tools
        self._kind = kind
        self._is_read_only = is_read_only

    def told(self, args: Arguments) -> Effects:
        paths = args.paths
        match self._kind:
            case "read" if self.name == "Grep":
                return Effects(searches=paths, searched_names=args.glob)
            case "read":
                return Effects(reads=paths)
            case "write":
                return Effects(reads=() if self.name == "Write" else paths, writes=paths)
            case "command" if self.name == "Bash":
                command = Command(args.command, is_read_only=self._is_read_only)
                return Effects(reads=paths, commands=(command,))
            case "command":
                return Effects(agents=(Agent(args.subagent_type),), is_complete=False)
            case "network":
                urls = (args.url,) if args.url else ()
                return Effects(urls=urls, asks_web=not urls, is_complete=self._is_read_only)

    async def effects(self, args: Arguments, ctx: ToolContext) -> Effects:
        return self.told(args)

    def title(self, args: Arguments) -> str:
        return args.command

    async def run(self, args: Arguments, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        yield Output("")


class Calls:
    """Makes calls in one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = PathResolver(root)
        self._outputs = OutputStore(root / ".outputs")

    def of(self, name: str, kind: Kind, *, is_read_only: bool = False, **arguments: object) -> ToolCall:
        tool = NamedTool(name, kind, is_read_only=is_read_only)
        args = Arguments.model_validate(arguments)
        context = ToolContext("id", self.paths, SeenFiles(), self._outputs)
        return ToolCall("id", tool, args, arguments, context, tool.told(args))

    def read(self, *paths: str, name: str = "Read", **arguments: object) -> ToolCall:
        return self.of(name, "read", is_read_only=True, paths=paths, **arguments)

    def write(self, *paths: str, name: str = "Edit") -> ToolCall:
        return self.of(name, "write", paths=paths)

    def bash(self, command: str, *, is_read_only: bool = False) -> ToolCall:
        return self.of("Bash", "command", is_read_only=is_read_only, command=command)

    def fetch(self, url: str) -> ToolCall:
        return self.of("WebFetch", "network", is_read_only=True, url=url)
