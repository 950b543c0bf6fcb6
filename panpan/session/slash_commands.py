"""Slash commands where no terminal runs them: what a session needs of whoever has them.

The rule: a text that is meant as a command never goes to the model as it is. The commands show what they show, so that
they lie with the faces, above this; a session loads them by name with the first text that begins with a slash.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.session.command import Command
    from panpan.session.session import Session


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a slash command."""

    text: str = ""
    """Text to show, a row a line, without colours, safe for a terminal."""
    prompts: Sequence[str] = ()
    """Prompts for the model, to be sent now."""


class SlashCommands(Protocol):
    """Finds and runs slash commands."""

    @property
    def names(self) -> Sequence[str]:
        """Those that run without a terminal, without their slash."""
        ...

    def line_in(self, text: str) -> str | None:
        """Return the command that a text is meant as, with its slash; None where it is a prompt."""
        ...

    async def run(self, line: str, session: "Session") -> CommandResult:
        """Run the command of a line.

        Raises:
            ConfigError: There is no such command, or it needs a terminal.
            PanpanError: It could not do what it was asked for.
        """
        ...


class NoCommands:
    """A session without slash commands: every text is a prompt."""

    names: Sequence[str] = ()

    def line_in(self, text: str) -> str | None:
        """Return None."""
        return None

    async def run(self, line: str, session: "Session") -> CommandResult:
        """Do nothing; there is no line to run."""
        return CommandResult()


class LoadedCommands:
    """Slash commands that are imported with the first text that begins with a slash.

    Args:
        module: Name of the module whose `SessionCommands` they are; made of the environment.
        env: The environment that panpan was started in.
        further: Commands of capabilities from outside.
    """

    def __init__(self, module: str, env: Mapping[str, str], further: "Sequence[Command]" = ()) -> None:
        self._further = further
        self._module = module
        self._env = env
        self._loaded: SlashCommands | None = None

    @property
    def names(self) -> Sequence[str]:
        return self._commands.names

    def line_in(self, text: str) -> str | None:
        return self._commands.line_in(text) if text.lstrip().startswith("/") else None

    async def run(self, line: str, session: "Session") -> CommandResult:
        return await self._commands.run(line, session)

    @property
    def _commands(self) -> SlashCommands:
        if self._loaded is None:
            loaded: SlashCommands = import_module(self._module).SessionCommands(self._env, self._further)
            self._loaded = loaded
        return self._loaded
