"""The program that runs panpan and answers for things of its own: hooks and MCP servers in its process."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.session.log.session_log import SessionLog


@dataclass(frozen=True, slots=True)
class HostHook:
    """A hook of the program."""

    event: str
    matcher: str
    """Names that it is for, as in files with hooks; empty for all."""
    callback: str
    """Id by which the program knows it."""
    timeout_s: float | None = None
    """Seconds that it may take; None for those of other hooks."""
    is_guard: bool = False
    """True if its failure counts as a no."""


class Host(Protocol):
    """The program. Each method raises ToolError if the program does not answer, or answers with an error."""

    @property
    def hooks(self) -> Sequence[HostHook]:
        """Its hooks as they are now."""
        ...

    @property
    def limits_turns(self) -> bool:
        """True if it limits turns itself, so that the limit for runs that nobody watches does not count."""
        ...

    @property
    def listings(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Definitions of the tools of each of its MCP servers, by the server's name."""
        ...

    def log_opened(self, log: "SessionLog") -> None:
        """Take note of a log before anything is added to it: the session's, or that of a subagent."""
        ...

    @property
    def answers_servers(self) -> bool:
        """True if it may answer what MCP servers ask the user."""
        ...

    async def answer_server(self, server: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put a question of an MCP server to the program, as the server asks it, and return the answer to the server.

        Cancelling it tells the program.
        """
        ...

    async def run_hook(self, callback: str, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a hook and return its answer; cancelling it tells the program."""
        ...

    async def send_to_server(self, server: str, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Send a message of JSON-RPC to one of its MCP servers, and return the answer to a request."""
        ...
