"""Parts that faces and the session's commands do something with: a feature offers one, and `Session.find` finds it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from anyio import CancelScope

from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage

if TYPE_CHECKING:
    from panpan.session.command import Terminal


@dataclass(frozen=True, slots=True)
class UserCommandResult:
    """What a command of the user's left."""

    message: UserMessage
    """For the conversation: the command, and what it printed, within bounds."""
    lines: Sequence[str]
    """What it printed and how it ended, harmless for a terminal."""
    is_error: bool
    """True if it failed, was stopped or took too long."""


NO_SHELL = "this session has no shell, so that no command can be run"


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


class FileHistory(Protocol):
    """Keeps what the files were before each message of the user."""

    async def go_back(self, terminal: "Terminal", to: str) -> bool:
        """Show how the files come back to what they were before a message, ask, and do it; True if they are so now.

        Args:
            terminal: Where the user is asked.
            to: `uuid` of the message.

        Raises:
            SnapshotError: It cannot be done; the files are as they were.
        """
        ...
