"""What a tool is, and what every tool is given.

The executor validates the arguments, asks the hooks, bounds the time and turns errors into results, so a tool does none
of that: it says what it touches, does its work, and raises `ToolError` with advice for the model when it cannot.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from panpan.core.effects import UNKNOWN, Effects
from panpan.core.schema import input_schema
from panpan.core.seen_files import SeenFiles
from panpan.system.environment import child_environment, user_environment
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.system.processes.limits import Limits
from panpan.system.processes.process_tree import ProcessTree
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.dataclass import dataclass
from panpan.types.display import DiffDisplay
from panpan.types.llm import ToolDefinition
from panpan.types.tool import IntendedChange, ToolYield

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
    """One thing that the model may ask for. Its description for the model lies beside its module as `<module>.md`."""

    name: ClassVar[str]
    """As the model calls it."""
    input_model: ClassVar[type[BaseModel]]
    """Its arguments; field descriptions are sent to the model."""
    description: ClassVar[str] = ""
    """What the model is told of it; empty: the text of the file `<module>.md` beside its module."""
    timeout_s: ClassVar[float | None] = 120.0
    """Seconds after which the executor ends the call; None where the tool bounds itself."""

    notes_changes: ClassVar[bool] = False
    """Whether it changes files alone, and none of them before `ToolContext.note_changes` knows what it will become."""

    is_shared: ClassVar[bool] = True
    """True if equal calls side by side run once, and each gets the result."""

    only_reads: ClassVar[bool] = False
    """True if no call of it, whatever its arguments, changes anything of the user's or goes into the network."""

    is_for_subagents: ClassVar[bool] = True
    """False if it asks the session's user, or reads or changes what is the session's own; then no subagent gets it."""

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

    def time_limit_s(self, args: InputT) -> float | None:
        """Return the seconds after which the call is ended; None where it may take as long as it needs."""
        return self.timeout_s

    def may_be_repeated(self, args: InputT) -> bool:
        """Return whether the same call, made again and again, can well bring something new, as one that waits does."""
        return False

    async def explained(self, args: InputT, ctx: ToolContext) -> str:
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
    package, _, module = kind.__module__.rpartition(".")
    description = files(package).joinpath(f"{module}.md").read_text(encoding="utf-8").strip()
    return ToolDefinition(kind.name, description, input_schema(kind.input_model))
