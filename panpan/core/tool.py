"""What a tool is, what every tool is given, and tools from plain functions.

The executor validates the arguments, asks the hooks, bounds the time and turns errors into results, so a tool does none
of that: it says what it touches, does its work, and raises `ToolError` with advice for the model when it cannot.

An edit of a file that the model has not read, or that has changed since, would be made blindly; the file tools ask here
first. It belongs to a session, is kept in memory, and starts empty.

The most specific pattern decides, whatever the order, so that merging the settings of several files cannot change the
outcome: an exact name before a wildcard, more fixed characters before fewer, and off before on. Case makes no
difference.
"""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from hashlib import blake2b
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from panpan.core.effects import UNKNOWN, Effects
from panpan.system.environment import child_environment, user_environment
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.system.processes.limits import Limits
from panpan.system.processes.process_table import ProcessTree
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import DiffDisplay, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import IntendedChange, Output, ToolYield
from panpan.types.llm import ToolDefinition
from panpan.types.permission import Box, Opening

_UNTOLD = frozenset({"title", "minLength", "maxLength", "pattern"})
"""What a model is not told of a value: where it matters, the error says it."""


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `model`: references resolved, titles and nulls of optional fields left out.

    So are defaults that are nothing, no or zero: any model takes it to be so where nothing is said. A recursive model
    keeps its references.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    small: dict[str, Any] = _smaller(schema, definitions, ())
    small.pop("description", None)  # the docstring of the model; the tool's own description says it
    return small


def _smaller(node: Any, definitions: dict[str, Any], open_names: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_smaller(item, definitions, open_names) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name not in open_names:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return _smaller({**definitions[name], **rest}, definitions, (*open_names, name))
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            rest = {key: value for key, value in node.items() if key != "anyOf" and value is not None}
            return _smaller({**options[0], **rest}, definitions, open_names)
    return {
        key: _properties(value, definitions, open_names)
        if key == "properties"
        else _smaller(value, definitions, open_names)
        for key, value in node.items()
        if key not in _UNTOLD and (key != "default" or value)
    }


def _properties(properties: dict[str, Any], definitions: dict[str, Any], open_names: tuple[str, ...]) -> dict[str, Any]:
    """Shrink each property; a property may itself be called "title"."""
    return {name: _smaller(schema, definitions, open_names) for name, schema in properties.items()}


def digest_of(data: bytes) -> bytes:
    """Return the digest by which two contents of a file are told apart."""
    return blake2b(data, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Sight:
    """What the model saw of a file, and when."""

    digest: bytes
    number: int
    """Tells one sight from another: the same content read again is another one."""


class SeenFiles:
    """What the model has seen of files, by canonical path."""

    def __init__(self) -> None:
        self._sights: dict[Path, Sight] = {}
        self._numbers = count(1)

    def saw(self, path: Path, data: bytes) -> None:
        """Note that the model knows `data` to be the content of the file at the canonical `path`."""
        sight = Sight(digest_of(data), next(self._numbers))
        self._sights.pop(path, None)  # so that it becomes the newest
        self._sights[path] = sight

    def digest(self, path: Path) -> bytes | None:
        """Return the digest of what the model last saw at `path`, or None where it has not read it."""
        sight = self._sights.get(path)
        return sight.digest if sight is not None else None

    def newest(self, most: int) -> Sequence[tuple[Path, Sight]]:
        """Return the files that the model has seen last, the newest first, `most` at most."""
        return list(self._sights.items())[-most:][::-1]

    def clear(self) -> None:
        """Note that the model knows no file any more, since what it read is not in its conversation."""
        self._sights.clear()

    def forget(self, path: Path) -> None:
        """Note that the file is gone."""
        self._sights.pop(path, None)


InputT = TypeVar("InputT", bound=BaseModel)


async def _note_nowhere(changes: Sequence[IntendedChange]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What every tool gets, for one call."""

    tool_use_id: str
    paths: PathResolver
    """The one way from a path the model wrote to a path on disk; knows the session's working directory."""
    seen_files: SeenFiles
    """Which files the model has read in this session, and what was in them."""
    outputs: OutputStore
    """Where output goes that is too large for a result."""
    environment: Mapping[str, str] = field(default_factory=child_environment)
    """What the model's commands get of the environment: what programs need, no keys and no tokens."""
    user_environment: Mapping[str, str] = field(default_factory=user_environment)
    """What the user's own commands get: all but keys and tokens."""
    limits: Limits = field(default_factory=Limits)
    """What one command may use of the machine."""
    own_environment: Mapping[str, str] = field(default_factory=dict)
    """What panpan itself has of the user's variables, less the keys of model providers; no command gets it."""
    processes: ProcessTree = field(default_factory=ProcessTree)
    """Marks what the session's commands start, so that none of it survives the session."""
    sandbox: CommandSandbox = field(default_factory=CommandSandbox)
    """What the session's commands run in."""
    box: Box = "usual"
    """The box for the commands of this call."""
    opening: Opening | None = None
    """Surroundings that the user gave its command in place of those that it asked for."""
    runs_alone: bool = True
    """False while other calls run side by side; then the working directory must not change."""
    allowed_change: DiffDisplay | None = None
    """What `preview` said when the user allowed the call, and so all that it may change; None: he saw no preview."""
    note_changes: Callable[[Sequence[IntendedChange]], Awaitable[None]] = _note_nowhere
    """Makes durable what the call is about to change; awaited before the first change by tools that say
    `notes_changes`."""
    note_left: Callable[[str], None] = lambda _: None
    """Told in a sentence what a call that is being cut short has done, by tools that know."""


class Tool(ABC, Generic[InputT]):
    """One thing that the model may ask for. The description of `WebFetch` is the file `web_fetch.md` beside it."""

    name: ClassVar[str]
    """As the model calls it."""
    input_model: ClassVar[type[BaseModel]]
    """Its arguments; field descriptions are sent to the model."""
    description: ClassVar[str] = ""
    """What the model is told of it; empty: the text of that file."""
    timeout_s: ClassVar[float | None] = 120.0
    """Seconds after which the executor ends the call; None where the tool bounds itself."""

    notes_changes: ClassVar[bool] = False
    """True if it changes files alone, and none of them before `ToolContext.note_changes` knows what it will become."""

    is_shared: ClassVar[bool] = True
    """True if equal calls side by side run once, and each gets the result."""

    only_reads: ClassVar[bool] = False
    """True if no call of it, whatever its arguments, changes anything of the user's or goes into the network."""

    is_for_subagents: ClassVar[bool] = True
    """False if it asks the session's user, or reads or changes what is the session's own; then no subagent gets it."""

    starts_agents: ClassVar[bool] = False
    """True if a call of it starts an agent, which asks a model of its own."""

    shows_history: ClassVar[bool] = False
    """True if it shows what the model is not sent any more; its argument `call` is the id of a call."""
    asks_user: ClassVar[bool] = False
    """True if a call of it does nothing but show the user a question, whose answer is kept in their own words."""

    asks: ClassVar[str] = ""
    """The question whether a call may run, such as "Edit {title}?", or see `question`; empty: "Allow TOOL?"."""
    main_argument: ClassVar[str] = ""
    """Name of the argument that a question shows bare; empty: none says it all."""

    step: ClassVar[tuple[str, str] | None] = None
    """Verb and noun that count its calls which only look, such as "read" and "file"; None: each is shown by itself."""
    only_renames: ClassVar[bool] = False
    """True if all that it changes in files are names, so that each line stays where it was."""

    @property
    def is_advertised(self) -> bool:
        """True if a new session tells its model of it; False for one that asks the user where nobody is there."""
        return True

    def runs_beside_others(self, args: InputT) -> bool:
        """Return True if calls that change nothing may run at the same time as this one.

        It says so of calls that change nothing themselves. A call whose result depends on the order of the calls, as of
        a list of the session's own, runs alone all the same.
        """
        return self.only_reads

    async def effects(self, args: InputT, ctx: ToolContext) -> Effects:
        """Return what the call would do, for permissions and hooks; nothing is done yet.

        Raises:
            ToolError: It cannot be found out, or the call cannot be made; it is refused.
        """
        return UNKNOWN

    @abstractmethod
    def title(self, args: InputT) -> str:
        """Return the argument that matters, for one line on the screen."""

    def question(self, args: InputT) -> str:
        """Return the question whether the call may run, on one line: verb and object; empty: "Allow TOOL?"."""
        title = self.title(args).partition("\n")[0] if self.asks else ""
        return self.asks.format(title=title)

    def time_limit_s(self, args: InputT) -> float | None:
        """Return the seconds after which the call is ended; None where it may take as long as it needs."""
        return self.timeout_s

    def may_be_repeated(self, args: InputT) -> bool:
        """Return True if the same call, made again and again, can well bring something new, as one that waits does."""
        return False

    async def describe(self, args: InputT, ctx: ToolContext) -> str:
        """Return what the call would do, for the question whether it may, where its arguments do not say it all.

        Raises:
            ToolError: It cannot be done as things are.
        """
        return ""

    async def preview(self, args: InputT, ctx: ToolContext) -> DiffDisplay | None:
        """Return what the call would change, for the question whether it may; None where that is not known before.

        Raises:
            ToolError: It cannot be done as things are; before a yes, paths that need one are closed, too.
        """
        return None

    @abstractmethod
    def run(self, args: InputT, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        """Do the work: yield any number of `Progress`, then one `Output`.

        Raises:
            ToolError: It cannot be done; the text tells the model what to do.
        """

    @cached_property
    def definition(self) -> ToolDefinition:
        """The tool as the model is told of it."""
        return _definition_of(type(self))


@cache
def _definition_of(kind: type[Tool[Any]]) -> ToolDefinition:
    if kind.description:
        return ToolDefinition(kind.name, kind.description, input_schema(kind.input_model))
    package, _, _ = kind.__module__.rpartition(".")
    file = re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.name).lower()
    description = files(package).joinpath(f"{file}.md").read_text(encoding="utf-8").strip()
    return ToolDefinition(kind.name, description, input_schema(kind.input_model))


def looking_step(use: ToolUseBlock, tools: Mapping[str, Tool[Any]]) -> tuple[str, str] | None:
    """Return the verb and noun that count a call; None where it may do more than look, or is shown by itself."""
    tool = tools.get(use.name)
    if tool is None or tool.step is None:
        return None
    try:
        only_looks = tool.runs_beside_others(tool.input_model.model_validate(use.input))
    except ValidationError:
        return None
    return tool.step if only_looks else None


def enabled_tools(
    tools: Iterable[Tool[Any]], patterns: Mapping[str, bool], *, disallowed: Collection[str] = ()
) -> list[Tool[Any]]:
    """Return the tools that are on, in their order; a tool that no pattern names is on.

    Args:
        tools: All that there are.
        patterns: On or off by name; `*` stands for any characters and `?` for one, as in `mcp__github__*`.
        disallowed: Permission rules that deny. Those without parentheses take the tool away, whatever the patterns say;
            the others are the permission gate's business.
    """
    removed = [rule.strip() for rule in disallowed if "(" not in rule]
    return [
        tool for tool in tools if _is_on(tool.name, patterns) and not any(_matches(tool.name, name) for name in removed)
    ]


def _is_on(name: str, patterns: Mapping[str, bool]) -> bool:
    matching = [(_specificity(pattern), not is_on) for pattern, is_on in patterns.items() if _matches(name, pattern)]
    return not max(matching)[1] if matching else True


def _specificity(pattern: str) -> tuple[bool, int]:
    wildcards = pattern.count("*") + pattern.count("?")
    return wildcards == 0, len(pattern) - wildcards


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.casefold(), pattern.casefold())


class FileViewer(ABC):
    """Shows what is in a file."""

    @abstractmethod
    def file_call(self, path: str, lines: tuple[int, int] | None) -> tuple[Tool[Any], BaseModel]:
        """Return the call that shows a file.

        Args:
            path: As the user wrote it.
            lines: The first and the last line, from 1; None for the whole file.
        """


class FolderViewer(ABC):
    """Shows what is in a folder."""

    @abstractmethod
    def folder_call(self, path: str) -> tuple[Tool[Any], BaseModel]:
        """Return the call that shows the folder at a path, as the user wrote it."""


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
