"""Hooks of the user, for other parts of a session: moments that they may hear of, and hooks that hold for a while."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from panpan.config.places import BroughtFile
from panpan.session.agent import Agent
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HookProgress:
    """The beginning or the end of one run of a hook."""

    id: str
    """Id of the run."""
    event: str
    hook: str
    """Its action in words."""
    outcome: Literal["", "success", "error", "cancelled"] = ""
    """Empty at the beginning."""
    said: str = ""
    failure: str = ""
    """Reason why its answer does not count; empty if it does."""


HookAction: TypeAlias = Literal["command", "http", "mcp_tool", "prompt", "agent", "callback"]
"""Kind of what a hook does; callback: the program that runs panpan is asked."""


@dataclass(frozen=True, slots=True)
class ListedHook:
    """A hook, for a list."""

    event: str
    matcher: str
    action: HookAction
    title: str
    """Its action in words."""
    source: Literal["user", "project", "plugin", "host"]
    place: str
    """File and line."""
    plugin: str
    """Name of its plug-in; empty for none."""
    condition: str
    """Rule for its calls; empty for none."""
    timeout_s: float
    is_async: bool
    once: bool


@dataclass(frozen=True, slots=True)
class HookListing:
    """The hooks of a session, and the events that there are."""

    hooks: Sequence[ListedHook]
    events: Mapping[str, str]
    """Descriptions of the events, by name."""
    unmatched: Collection[str]
    """Events without matchers."""
    are_off: bool
    """True if the user has switched all hooks off."""


class HooksOfUser(ABC):
    """Runs hooks of the user. The capability for hooks has it, among its services."""

    @property
    @abstractmethod
    def listing(self) -> HookListing:
        """The hooks that the user and the program that runs panpan have set up."""

    @abstractmethod
    def hold(self, agent: Agent, file: BroughtFile, *, message: str = "") -> None:
        """Let the hooks in a file run in an agent, and in the subagents that it starts, until its turn ends.

        Args:
            agent: The agent.
            file: The file.
            message: Id of the message whose turn is meant; empty for now.
        """

    @abstractmethod
    def let_go(self, agent: Agent) -> None:
        """End what holds in an agent now, as where no turn came of it."""

    @abstractmethod
    def inherit(self, parent: Agent, child: Agent) -> None:
        """Let what holds in an agent hold in a subagent that it starts, too."""

    @abstractmethod
    def observe(self, tell: Callable[[HookProgress], None]) -> None:
        """Tell of each beginning and each end of a hook from now on, those of subagents included."""

    @abstractmethod
    async def tell(self, event: str, subject: str, told: Mapping[str, Any]) -> None:
        """Run the hooks of an event of the session.

        Args:
            event: Its name.
            subject: Name that matchers are compared with.
            told: What the hooks are told beside what each is told.

        Raises:
            HookRefusedError: One says no, where a no means something.
        """


class ReadingSubagent(ABC):
    """Looks into a question with tools that only read. The capability for subagents has it, among its services."""

    @abstractmethod
    async def look_into(self, question: str) -> str:
        """Return the report of a subagent of panpan's own, which the session starts, whatever agent asks.

        Raises:
            ToolError: It could not be started, or failed.
        """


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """Servers that came and went, by name."""

    added: Sequence[str]
    removed: Sequence[str]
    errors: Mapping[str, str]
    """Reasons why servers cannot be used."""


class ToolsOfServers(ABC):
    """Calls tools of MCP servers for hooks. The capability for servers has it, among its services."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the servers."""

    @abstractmethod
    async def reconnect(self, server: str) -> None:
        """End a server, and start it again.

        Raises:
            ToolError: There is none of that name, it may not run, or it fails.
        """

    @abstractmethod
    async def switch(self, server: str, *, is_on: bool) -> None:
        """Let a server run in this session, or not.

        Raises:
            ToolError: There is none of that name, it may not run, or it fails.
        """

    @abstractmethod
    async def replace(self, servers: Mapping[str, Any]) -> ServerChanges:
        """Replace the servers that came this way before, and those of the program that runs panpan, by others.

        Args:
            servers: Their entries, as in `.mcp.json`, by name.
        """

    @abstractmethod
    async def read(self, server: str, uri: str) -> Sequence[Mapping[str, Any]]:
        """Return the contents of a resource, as the server sends them.

        Raises:
            ToolError: The server may not run, fails, or refuses.
        """

    @abstractmethod
    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the text that a tool of a server returns; nobody is asked, since the user has set up the hook.

        Args:
            server: Name of the server, which may run.
            tool: Name of the tool on the server.
            arguments: Its arguments.

        Raises:
            ToolError: The server may not run, fails, or says that the call failed.
        """
