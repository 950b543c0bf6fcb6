"""Tools whose modules are imported at their first call, so that a start does not pay for what it may not use.

Until then the file `tools.json` beside the capability speaks for the tool: its description, the JSON schema of its
arguments, and its flags.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cache, cached_property
from importlib import import_module
from threading import Lock
from typing import Any, ClassVar

from pydantic import BaseModel

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext, facts_beside, make_definition
from panpan.types.content import DiffDisplay
from panpan.types.events import ToolYield
from panpan.types.llm import ToolDefinition

_OWN_FACTS = ("name", "input_model", "description")


def facts_of(kind: type[Tool[Any]]) -> dict[str, Any]:
    """Return what `tools.json` says of a tool: its definition, and the flags that differ from those of `Tool`."""
    definition = make_definition(kind)
    flags = {name: getattr(kind, name) for name in _flags() if getattr(kind, name) != getattr(Tool, name)}
    return {"description": definition.description, "input_schema": definition.input_schema, "flags": flags}


def _flags() -> list[str]:
    return [name for name in Tool.__annotations__ if name not in _OWN_FACTS]


def late_tool(package: str, name: str, maker: str | Callable[..., Tool[Any]], *args: object) -> Tool[Any]:
    """Return a tool that is made at its first call.

    Args:
        package: Package of the capability, with `tools.json`.
        name: Name of the tool.
        maker: Its class, as "module:Class" below the package, or a function that imports and makes it. Called at the
            first call of the tool, in any thread.
        args: What is handed to it.
    """
    return _late_kind(package, name)(package, maker, args)


@cache
def _late_kind(package: str, name: str) -> "type[_LateTool]":
    facts = facts_beside(package)[name]
    flags = {key: tuple(value) if isinstance(value, list) else value for key, value in facts["flags"].items()}
    definition = ToolDefinition(name, facts["description"], facts["input_schema"])
    return type(f"Late{name}", (_LateTool,), {"name": name, "late_definition": definition, **flags})


class _LateTool(Tool[BaseModel]):
    """Stands for a tool that is not made yet; all but its definition and its flags is asked of the tool itself."""

    late_definition: ClassVar[ToolDefinition]

    def __init__(self, package: str, maker: str | Callable[..., Tool[Any]], args: Sequence[object]) -> None:
        self._package = package
        self._maker = maker
        self._args = args
        self._lock = Lock()
        self._made: Tool[Any] | None = None

    def load(self) -> Tool[Any]:
        with self._lock:  # the warm-up may load it beside the first call
            if self._made is None:
                self._made = self._imported()(*self._args)
            return self._made

    def _imported(self) -> Callable[..., Tool[Any]]:
        if not isinstance(self._maker, str):
            return self._maker
        module, _, name = self._maker.partition(":")
        kind: type[Tool[Any]] = getattr(import_module(f"{self._package}.{module}"), name)
        return kind

    @cached_property
    def definition(self) -> ToolDefinition:
        return self.late_definition

    def may_run_in_parallel(self, args: BaseModel) -> bool:
        return self.load().may_run_in_parallel(args)

    async def effects(self, args: BaseModel, ctx: ToolContext) -> Effects:
        return await self.load().effects(args, ctx)

    def title(self, args: BaseModel) -> str:
        return self.load().title(args)

    def question(self, args: BaseModel) -> str:
        return self.load().question(args)

    def time_limit_s(self, args: BaseModel) -> float | None:
        return self.load().time_limit_s(args)

    def may_be_repeated(self, args: BaseModel) -> bool:
        return self.load().may_be_repeated(args)

    async def describe(self, args: BaseModel, ctx: ToolContext) -> str:
        return await self.load().describe(args, ctx)

    async def preview(self, args: BaseModel, ctx: ToolContext) -> DiffDisplay | None:
        return await self.load().preview(args, ctx)

    def run(self, args: BaseModel, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        return self.load().run(args, ctx)
