"""The base class of tools, the context of their calls, and tools from plain functions.

The executor validates the arguments, asks the hooks, limits the time and turns errors into results, so a tool does none
of that. It declares its effects, does its work, and raises `ToolError` with advice for the model if it cannot.

The file tools ask `SeenFiles` before an edit: without it they would blindly change a file that the model has not read,
or that has changed since. It belongs to a session, is kept in memory, and starts empty.

The most specific pattern of the setting `tools` decides, whatever the order, so that merging the settings of several
files cannot change the outcome: an exact name before a wildcard, more fixed characters before fewer, and off before on.
Case makes no difference.
"""

import inspect
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
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
from panpan.core.file_writer import SessionWriter
from panpan.core.leases import Leases
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
"""Keywords of a JSON schema that the model does not need; if one matters, the error names it."""


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `model`: references resolved, titles and nulls of optional fields left out.

    So are defaults that are empty, false or zero, since any model assumes those anyway. A recursive model keeps its
    references.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    small: dict[str, Any] = _smaller(schema, definitions, ())
    small.pop("description", None)  # the model's docstring; the tool has its own description
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
    """Return the digest that tells two contents of a file apart."""
    return blake2b(data, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class SeenContent:
    """One view of a file's content by the model."""

    digest: bytes
    number: int
    """Number of the view; the same content read again has another one."""


class SeenFiles:
    """Contents of files that the model has seen, by canonical path."""

    def __init__(self) -> None:
        self._sights: dict[Path, SeenContent] = {}
        self._numbers = count(1)

    def add(self, path: Path, data: bytes) -> None:
        """Note that the model knows `data` to be the content of the file at the canonical `path`."""
        sight = SeenContent(digest_of(data), next(self._numbers))
        self._sights.pop(path, None)  # so that it becomes the newest
        self._sights[path] = sight

    def digest(self, path: Path) -> bytes | None:
        """Return the digest of the content that the model last saw at `path`; None if it has seen none."""
        sight = self._sights.get(path)
        return sight.digest if sight is not None else None

    def newest(self, most: int) -> Sequence[tuple[Path, SeenContent]]:
        """Return the files that the model saw last, newest first, at most `most` of them."""
        return list(self._sights.items())[-most:][::-1]

    def clear(self) -> None:
        """Forget all files, since their contents are no longer in the model's conversation."""
        self._sights.clear()

    def forget(self, path: Path) -> None:
        """Forget a file that was deleted."""
        self._sights.pop(path, None)


InputT = TypeVar("InputT", bound=BaseModel)


async def _note_nowhere(changes: Sequence[IntendedChange]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Context of one call, which every tool gets."""

    tool_use_id: str
    paths: PathResolver
    """The only way from a path that the model wrote to a path on disk; it knows the session's working directory."""
    seen_files: SeenFiles
    """Files that the model has read in this session, with their content at that time."""
    outputs: OutputStore
    """Store for output that is too large for a result."""
    writer: SessionWriter = field(default_factory=SessionWriter)
    """The way in which the file tools write; the agents of a session share it."""
    environment: Mapping[str, str] = field(default_factory=child_environment)
    """Environment of the model's commands: variables that programs need, without keys and tokens."""
    user_environment: Mapping[str, str] = field(default_factory=user_environment)
    """Environment of the user's own commands: all variables except keys and tokens."""
    limits: Limits = field(default_factory=Limits)
    """Limits on the resources of one command."""
    own_environment: Mapping[str, str] = field(default_factory=dict)
    """Environment of panpan itself, without the keys of model providers; no command gets it."""
    processes: ProcessTree = field(default_factory=ProcessTree)
    """Mark on the processes that the session's commands start, so that none of them outlives the session."""
    sandbox: CommandSandbox = field(default_factory=CommandSandbox)
    """Sandbox of the session's commands."""
    box: Box = "usual"
    """The box for the commands of this call."""
    opening: Opening | None = None
    """Surroundings that the user gave its command instead of those that it asked for."""
    runs_alone: bool = True
    """False while other calls run side by side; then the working directory must not change."""
    leases: Leases | None = None
    """Leases that the calls of one message share with the subagents that it starts; None outside of both."""
    allowed_change: DiffDisplay | None = None
    """Preview that the user saw when they allowed the call, and so all that it may change; None if they saw none."""
    note_changes: Callable[[Sequence[IntendedChange]], Awaitable[None]] = _note_nowhere
    """Records the changes that the call is about to make; tools with `notes_changes` await it before the first one."""
    note_unfinished: Callable[[str], None] = lambda _: None
    """Takes a sentence from a tool about the work that it has done when its call is cut short."""


class Tool(ABC, Generic[InputT]):
    """A tool that the model may call. The description of `WebFetch` is the file `web_fetch.md` beside it."""

    name: ClassVar[str]
    """Name by which the model calls it."""
    input_model: ClassVar[type[BaseModel]]
    """Its arguments; field descriptions are sent to the model."""
    description: ClassVar[str] = ""
    """Description for the model; empty for the text of that file."""
    timeout_s: ClassVar[float | None] = 120.0
    """Seconds after which the executor stops the call; None if the tool limits its own time."""

    notes_changes: ClassVar[bool] = False
    """True if it changes nothing but files, and passes each change to `ToolContext.note_changes` before making it."""

    is_shared: ClassVar[bool] = True
    """True if equal calls side by side run once and share the result."""

    only_reads: ClassVar[bool] = False
    """True if none of its calls, whatever the arguments, changes the user's data or uses the network."""

    names_reads: ClassVar[bool] = False
    """True if its result depends on nothing but the files that its effects name, so that it may run beside a change of
    others."""

    waits: ClassVar[bool] = False
    """True if its calls only wait for something that works elsewhere; they take no slot among the calls that work, and
    hold no files."""

    is_for_subagents: ClassVar[bool] = True
    """False if it asks the session's user, or uses data of the session itself; then no subagent gets it."""

    starts_agents: ClassVar[bool] = False
    """True if its calls start an agent, which asks a model of its own."""

    is_beside_lists: ClassVar[bool] = False
    """True if the setting `tools.only` does not take it away, as with what leads to tools of servers."""

    shows_history: ClassVar[bool] = False
    """True if it shows messages that are no longer sent to the model; its argument `call` is the id of a call."""
    stays_in_context: ClassVar[bool] = False
    """True if its results stay when old output is left out of the requests."""
    asks_user: ClassVar[bool] = False
    """True if its calls only ask the user a question, whose answer is kept in their own words."""

    question_template: ClassVar[str] = ""
    """Question about permission for a call, such as "Edit {title}?", or see `question`; empty for "Allow TOOL?"."""
    main_argument: ClassVar[str] = ""
    """Name of the argument that a question shows alone; empty if no argument says it all."""

    count_label: ClassVar[tuple[str, str] | None] = None
    """Verb and noun for counting its read-only calls, such as "read" and "file"; None to show each by itself."""
    only_renames: ClassVar[bool] = False
    """True if it changes only names in files, so that each line stays where it was."""

    @property
    def is_advertised(self) -> bool:
        """True if a new session offers it to the model; False if it asks the user and nobody is there to answer."""
        return True

    def may_run_in_parallel(self, args: InputT) -> bool:
        """Return True if read-only calls may run at the same time as this one.

        That is the case only for calls that are read-only themselves. A call whose result depends on the order of the
        calls, as with a list that the session keeps, still runs alone.
        """
        return self.only_reads

    async def effects(self, args: InputT, ctx: ToolContext) -> Effects:
        """Return the effects of a call, for permissions and hooks, without doing anything yet.

        Raises:
            ToolError: The effects cannot be determined, or the call cannot be made; it does not run.
        """
        return UNKNOWN

    @abstractmethod
    def title(self, args: InputT) -> str:
        """Return the most important argument, for one line on the screen."""

    def question(self, args: InputT) -> str:
        """Return the question about permission for the call, on one line: verb and object; empty for "Allow TOOL?"."""
        title = self.title(args).partition("\n")[0] if self.question_template else ""
        return self.question_template.format(title=title)

    def time_limit_s(self, args: InputT) -> float | None:
        """Return the seconds after which the call is stopped; None if it may take as long as it needs."""
        return self.timeout_s

    def may_be_repeated(self, args: InputT) -> bool:
        """Return True if repeating the same call can bring new results, as with a call that waits."""
        return False

    async def describe(self, args: InputT, ctx: ToolContext) -> str:
        """Return a description of the call, for the question about permission, if its arguments do not say it all.

        Raises:
            ToolError: It cannot be done as things are.
        """
        return ""

    async def preview(self, args: InputT, ctx: ToolContext) -> DiffDisplay | None:
        """Return the changes that the call would make, for the question about permission; None if they are not known.

        Raises:
            ToolError: It cannot be done as things are; paths that need a yes are closed at this time, too.
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
        """The tool as the model sees it."""
        return _definition_of(type(self))

    def load(self) -> "Tool[Any]":
        """Return the tool that does the work: itself, unless its module is imported at its first call."""
        return self

    def meant(self, args: InputT) -> "tuple[Tool[Any], Mapping[str, Any]] | None":
        """Return the tool, and its arguments, that a call of this one stands for; None: itself.

        Hooks, rules, the log and the screen see a call of that tool.

        Raises:
            ToolError: There is no such tool.
        """
        return None


FACTS_FILE = "tools.json"
"""File beside a capability that says of its tools what a start needs to know; `scripts/tool_facts.py` writes it."""


@cache
def facts_beside(package: str) -> Mapping[str, Any]:
    """Return what that file says by the names of tools.

    Raises:
        FileNotFoundError: There is none.
    """
    file = Path(sys.modules[package].__file__ or "").with_name(FACTS_FILE)
    facts: Mapping[str, Any] = json.loads(file.read_bytes())
    return facts


@cache
def _definition_of(kind: type[Tool[Any]]) -> ToolDefinition:
    package, _, _ = kind.__module__.rpartition(".")
    with suppress(KeyError, ValueError, FileNotFoundError):  # a tool of others has no such file
        known = facts_beside(package)[kind.name]
        return ToolDefinition(kind.name, known["description"], known["input_schema"])
    return make_definition(kind)


def make_definition(kind: type[Tool[Any]]) -> ToolDefinition:
    """Return the tools of a class as the model sees them, from the class itself."""
    if kind.description:
        return ToolDefinition(kind.name, kind.description, input_schema(kind.input_model))
    package, _, _ = kind.__module__.rpartition(".")
    file = re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.name).lower()
    description = files(package).joinpath(f"{file}.md").read_text(encoding="utf-8").strip()
    return ToolDefinition(kind.name, description, input_schema(kind.input_model))


def count_label_of(use: ToolUseBlock, tools: Mapping[str, Tool[Any]]) -> tuple[str, str] | None:
    """Return the verb and noun for counting a call; None if it may do more than read, or is shown by itself."""
    tool = tools.get(use.name)
    if tool is None or tool.count_label is None:
        return None
    try:
        tool = tool.load()
        is_read_only = tool.may_run_in_parallel(tool.input_model.model_validate(use.input))
    except ValidationError:
        return None
    return tool.count_label if is_read_only else None


def enabled_tools(
    tools: Iterable[Tool[Any]], patterns: Mapping[str, bool], *, disallowed: Collection[str] = ()
) -> list[Tool[Any]]:
    """Return the tools that are on, in their order; a tool that no pattern matches is on.

    Args:
        tools: All tools.
        patterns: On or off by name; `*` matches any characters and `?` one, as in `mcp__github__*`.
        disallowed: Permission rules that deny. Those without parentheses remove the tool, whatever the patterns say;
            the others are left to the permission gate.
    """
    return [tool for tool in tools if is_enabled(tool.name, patterns, disallowed)]


def is_enabled(name: str, patterns: Mapping[str, bool], disallowed: Collection[str]) -> bool:
    """Return True if a tool is on; see `enabled_tools`."""
    if any("(" not in rule and _matches(name, rule.strip()) for rule in disallowed):
        return False
    matching = [(_specificity(pattern), not is_on) for pattern, is_on in patterns.items() if _matches(name, pattern)]
    return not max(matching)[1] if matching else True


def _specificity(pattern: str) -> tuple[bool, int]:
    wildcards = pattern.count("*") + pattern.count("?")
    return wildcards == 0, len(pattern) - wildcards


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.casefold(), pattern.casefold())


class FileViewer(ABC):
    """Source of calls that show a file."""

    @abstractmethod
    def file_call(self, path: str, lines: tuple[int, int] | None) -> tuple[Tool[Any], BaseModel]:
        """Return the call that shows a file.

        Args:
            path: Path as the user wrote it.
            lines: The first and the last line, from 1; None for the whole file.
        """


class FolderViewer(ABC):
    """Source of calls that show a folder."""

    @abstractmethod
    def folder_call(self, path: str) -> tuple[Tool[Any], BaseModel]:
        """Return the call that shows the folder at a path that the user wrote."""


class WordSearch(ABC):
    """Search for the places of a word in the working directory, as far as the model may see it."""

    @abstractmethod
    async def lines_with(self, word: str, ctx: ToolContext, *, limit: int) -> str:
        """Return at most `limit` lines with the whole word, each with its place; empty if there is none.

        Raises:
            ToolError: The search failed.
        """


Function: TypeAlias = Callable[..., Awaitable[str | Output]]
"""An async function; a parameter `ctx` gets the `ToolContext`, all others are the model's arguments."""

ToEffects: TypeAlias = Callable[[Any, ToolContext], Effects]
"""Function that returns the effects of a call from its arguments and its context."""


def tool(
    function: Function,
    *,
    name: str | None = None,
    effects: ToEffects = lambda _, __: UNKNOWN,
    only_reads: bool = False,
) -> Tool[Any]:
    """Return a function as a tool.

    Args:
        function: Does the work. Its annotations check the arguments, and its docstring tells the model what it does. A
            parameter with `Annotated[…, Field(description=…)]` has a description of its own.
        name: Name by which the model calls it; None for the function's name.
        effects: Returns the effects of a call. Without it, the user is asked about each call, and plan mode denies it.
        only_reads: True if no call changes anything or uses the network.

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
