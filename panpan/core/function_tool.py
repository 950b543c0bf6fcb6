"""Tools from plain functions: the parameters are the arguments, the docstring is what the model is told."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, create_model

from panpan.core.effects import UNKNOWN, Effects
from panpan.core.tool import Tool, ToolContext
from panpan.types.events import Output, ToolYield

Function: TypeAlias = Callable[..., Awaitable[str | Output]]
"""An async function; a parameter `ctx` gets the `ToolContext`, all others are the model's arguments."""

ToEffects: TypeAlias = Callable[[Any, ToolContext], Effects]
"""Returns what a call would do, of its arguments and its context."""


def tool(
    function: Function,
    *,
    name: str | None = None,
    effects: ToEffects = lambda _, __: UNKNOWN,
    only_reads: bool = False,
) -> Tool[Any]:
    """Return a function as a tool.

    Args:
        function: Does the work. Its annotations check the arguments, its docstring tells the model what it does; a
            parameter with `Annotated[…, Field(description=…)]` tells of itself.
        name: As the model calls it; None: as the function is called.
        effects: Tells what a call would do. Without it, each call is asked about, and denied in plan mode.
        only_reads: True if no call of it changes anything or goes into the network.

    Raises:
        ValueError: The function is not async or has no docstring, or a parameter has no type or no name of its own.
    """
    if not inspect.iscoroutinefunction(function):
        raise ValueError(f"{function.__name__} has to be an async function")
    text = inspect.getdoc(function)
    if not text:
        raise ValueError(f"{function.__name__} needs a docstring, which tells the model what it does")
    parameters = inspect.signature(function, eval_str=True).parameters
    fields: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.name == "ctx":
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"{function.__name__}: the parameter {parameter} has no name that a model could give")
        if parameter.annotation is parameter.empty:
            raise ValueError(f"{function.__name__}: the parameter {parameter.name} needs a type")
        fields[parameter.name] = (
            parameter.annotation,
            ... if parameter.default is parameter.empty else parameter.default,
        )
    called, takes_context, describes, reads = name or function.__name__, "ctx" in parameters, text, only_reads

    class FunctionTool(Tool[BaseModel]):
        __doc__ = text
        name: ClassVar[str] = called
        input_model: ClassVar[type[BaseModel]] = create_model(
            f"{called}Input", __config__=ConfigDict(extra="forbid", frozen=True), **fields
        )
        description: ClassVar[str] = describes
        only_reads: ClassVar[bool] = reads

        async def effects(self, args: BaseModel, ctx: ToolContext) -> Effects:
            return effects(args, ctx)

        def title(self, args: BaseModel) -> str:
            return str(next((getattr(args, field) for field in fields), ""))

        async def run(self, args: BaseModel, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
            given = {field: getattr(args, field) for field in fields}
            result = await function(**given, **({"ctx": ctx} if takes_context else {}))
            yield Output(result) if isinstance(result, str) else result

    return FunctionTool()
