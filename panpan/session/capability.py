"""A capability: one feature of a session. Ours, those of other packages and those of your own are all of this class.

The bases at the end are those by which faces find what a feature offers them.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

from anyio import CancelScope, create_task_group, move_on_after
from pydantic import BaseModel, ConfigDict

from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import ConfigError
from panpan.models.provider_kind import NO_KINDS
from panpan.session.log.fold import UnfinishedCall
from panpan.session.reminders import ReminderSource
from panpan.types.dataclass import dataclass
from panpan.types.messages import ToolResultMessage, UserMessage

if TYPE_CHECKING:
    from panpan.session.agent import Agent
    from panpan.session.command import Command, Terminal
    from panpan.session.context import SessionContext
    from panpan.session.log.record_kinds import SystemRecord
    from panpan.types.content import StatusItem
    from panpan.types.events import FileChange, FileRestore


ServiceT = TypeVar("ServiceT")


class NoSettings(BaseModel):
    """Settings of a capability that has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Capability:
    """One feature. Override what it has; all else does nothing.

    It is made when a session opens, once, after the capabilities before it. Keep the module light: import what only a
    call needs in the call.

    Args:
        session: The session: its id, log, conversation, settings, paths and gate.

    Raises:
        ConfigError: A setting cannot be used.
    """

    name: ClassVar[str]
    """Name in the settings and in `panpan capabilities list`."""
    record_types: ClassVar[Sequence[type["SystemRecord"]]] = ()
    """Kinds of record that it alone writes into the log and reads."""
    providers: ClassVar[Mapping[str, str]] = NO_KINDS
    """Kinds of models that it brings along, by the name behind `--model`: places `module:Class` of `ProviderKind`s."""
    settings_model: ClassVar[type[BaseModel]] = NoSettings
    """Keys of its table in the settings: `[capabilities.NAME]`, or that of a `Table` which a feature of panpan has."""
    is_external: ClassVar[bool] = False
    """True if it wraps a capability of another package or of a file."""
    fails_closed: ClassVar[bool] = False
    """True if no call may run once it has failed, since it might have said no."""

    def __init__(self, session: "SessionContext") -> None:
        self.session = session
        self.settings: Any = session.settings_of(type(self))
        """Its table of the settings, as its `settings_model`."""

    def tools(self, agent: "Agent") -> Iterable[Tool[Any]]:
        """Return the tools that it gives to the main agent or a subagent.

        A tool with `is_for_subagents` False is for the main one alone.
        """
        return ()

    def described(self) -> Mapping[str, Callable[[], object]]:
        """Return what programs may ask of it, by keys of the first line of stream-json."""
        return {}

    def unavailable(self) -> Iterable[str]:
        """Return names of its tools that cannot work here. A new session does not tell its model of them."""
        return ()

    def hooks(self, agent: "Agent") -> Iterable[Hook]:
        """Return the hooks of an agent's loop; once for each. The agent's `model` is known once a turn begins."""
        return ()

    def reminders(self, agent: "Agent") -> Iterable[ReminderSource]:
        """Return what watches over things that an agent's model is to be reminded of; called once for each agent."""
        return ()

    def status(self) -> "Iterable[StatusItem]":
        """Return what a face shows of it now. It is called for each picture of the screen, so it must be quick.

        Words are shown in the line below the input, a checklist above it.
        """
        return ()

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        """Return the user's message with the things that it refers to, such as the files that it mentions.

        Raises:
            PanpanError: The message must not be sent.
        """
        return message

    def recover_result(self, call: UnfinishedCall) -> ToolResultMessage | None:
        """Return the result of a call that a crash cut short, where it can tell; called in a worker thread."""
        return None

    def services(self) -> Iterable[object]:
        """Return objects that faces and other capabilities get by their type, as in `session[Todos]`."""
        return ()

    @classmethod
    def commands(cls) -> "Iterable[Command]":
        """Return its slash commands. They are known before a session is open, as for the help."""
        return ()

    def session_commands(self) -> "Iterable[Command]":
        """Return further slash commands, which depend on the session."""
        return self.commands() if self.is_external else ()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        """Do what goes on as long as the session is open, and clean up at its end."""
        yield

    async def aclose(self) -> None:
        """Give back what others may have used until their end: no `lifespan` and no process of the session is left."""


class Capabilities:
    """The capabilities of one session, in their order."""

    def __init__(self) -> None:
        self._all: list[Capability] = []
        self._services: list[object] = []

    def add(self, capability: Capability) -> None:
        self._all.append(capability)
        self.register(capability, *capability.services())

    def register(self, *objects: object) -> None:
        self._services += objects

    def __iter__(self) -> Iterator[Capability]:
        return iter(self._all)

    def find(self, kind: type[ServiceT]) -> ServiceT | None:
        """Return the object of a class or of a subclass of it; None if the session has none."""
        return next((found for found in self._services if kind in type(found).__mro__), None)  # type: ignore[return-value]

    def __getitem__(self, kind: type[ServiceT]) -> ServiceT:
        """Return the same, or raise KeyError."""
        if (found := self.find(kind)) is None:
            raise KeyError(f"this session has no {kind.__name__}")
        return found

    @property
    def session_commands(self) -> "Sequence[Command]":
        """The slash commands that only this session has; the others are known before it is open."""
        return [command for one in self._all for command in one.session_commands()]

    def described(self) -> Mapping[str, Callable[[], object]]:
        return {key: ask for capability in self._all for key, ask in capability.described().items()}

    def status(self) -> "Sequence[StatusItem]":
        return [item for capability in self._all for item in capability.status()]

    def tools(self, agent: "Agent") -> Sequence[Tool[Any]]:
        """Return the tools of an agent in the order in which its model reads them; the first of a name counts.

        Small models write `bash` for `Bash`, so case makes no other name.
        """
        tools: dict[str, Tool[Any]] = {}
        for tool in (tool for capability in self._all for tool in capability.tools(agent)):
            if tools.setdefault(tool.name.casefold(), tool) is not tool and agent.is_main:
                agent.warn(f"there are two tools with the name {tool.name}; the one that came first counts")
        return list(tools.values())

    def hooks(self, agent: "Agent") -> Sequence[Hook]:
        return [hook for capability in self._all for hook in capability.hooks(agent)]

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        """Let all of them run, and end them in the opposite order, each whatever becomes of the others."""
        async with AsyncExitStack() as stack:
            for capability in self._all:
                await stack.enter_async_context(capability.lifespan())
            yield

    @asynccontextmanager
    async def closing(self) -> AsyncGenerator[None, None]:
        """Close all of them at the end, in the opposite order, each whatever becomes of the others."""
        async with AsyncExitStack() as stack:
            for capability in self._all:
                await stack.enter_async_context(concurrently(then=capability.aclose))
            yield


def provider_kinds(capabilities: Iterable[type[Capability]]) -> Mapping[str, str]:
    """Return the kinds of models that capabilities bring along, with their places.

    Raises:
        ConfigError: Two bring the same.
    """
    kinds: dict[str, str] = {}
    for capability in capabilities:
        for kind, place in capability.providers.items():
            if kinds.setdefault(kind, place) != place:
                raise ConfigError(f"two capabilities bring {kind} models, {kinds[kind]} and {place}; leave one out")
    return kinds


@asynccontextmanager
async def concurrently(
    *tasks: Callable[[], Coroutine[Any, Any, None]], then: Callable[[], Awaitable[object]] | None = None
) -> AsyncGenerator[None, None]:
    """Run tasks while the body runs, then cancel them, and await `then` in any case, for a bounded time."""
    try:
        async with create_task_group() as group:
            for task in tasks:
                group.start_soon(task)
            yield
            group.cancel_scope.cancel("the session is over")
    finally:
        if then is not None:
            with move_on_after(CLEANUP_S, shield=True):
                await then()


@dataclass(frozen=True, slots=True)
class UserCommandResult:
    """Outcome of a command that the user ran."""

    message: UserMessage
    """Message for the conversation: the command and its output, within bounds."""
    lines: Sequence[str]
    """Output and end of the command, harmless for a terminal."""
    is_error: bool
    """True if it failed, was stopped or took too long."""


NO_SHELL = "this session has no shell to run commands"


class UserShell(Protocol):
    """Runs the commands that the user types behind a `!`, in the session's working directory."""

    @property
    def timeout_s(self) -> float:
        """Seconds after which a command is ended."""
        ...

    async def run(
        self, command: str, show: Callable[[str], None], *, scope: CancelScope | None = None
    ) -> UserCommandResult:
        """Run a command.

        Args:
            command: What was typed behind the `!`.
            show: Given what it prints while it runs, at most ten times a second; not yet harmless for a terminal.
            scope: Cancelling it stops the command with all that it started; what it printed until then is the result.

        Raises:
            ToolError: The command is empty, too long, not UTF-8 or cannot be started.
        """
        ...


class StructuredAnswer(Protocol):
    """Holds the answer of a turn as data."""

    @property
    def is_wanted(self) -> bool:
        """True if the caller wants answers that fit a schema."""
        ...

    @property
    def values(self) -> Sequence[Any]:
        """The answer of the newest turn that fits; empty if there is none, since an answer may be null, too."""
        ...


class FileHistory(Protocol):
    """Keeps what the files were before each message of the user."""

    async def changes(self, since: str) -> "FileRestore":
        """Return what was changed in files since a message of the user, by its `uuid`.

        Raises:
            SnapshotError: It cannot be worked out.
        """
        ...

    async def step(self, direction: Literal["undo", "redo"], *, only_looks: bool = False) -> "FileRestore":
        """Undo the changes of the last turn, or redo them; files that somebody else has changed since stay as they are.

        Args:
            direction: The way to go.
            only_looks: True to return what would change, and change nothing.

        Raises:
            SnapshotError: It cannot be done; the files are as they were.
        """
        ...

    async def go_back(self, terminal: "Terminal", to: str) -> bool:
        """Show how the files come back to what they were before a message, ask, and do it; True if they are so now.

        Args:
            terminal: Where the user is asked.
            to: `uuid` of the message.

        Raises:
            SnapshotError: It cannot be done; the files are as they were.
        """
        ...

    async def bring_back(self, to: str, *, only_looks: bool = False) -> "Sequence[FileChange]":
        """Bring files back to what they were before a message, all but those that somebody else has changed since.

        Args:
            to: `uuid` of the message.
            only_looks: True to return what would change, and change nothing.

        Raises:
            SnapshotError: It cannot be done; the files are as they were.
        """
        ...
