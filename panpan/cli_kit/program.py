"""The parts of the program that lie above a subcommand: it gets them with its context, and imports none of them."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panpan.errors import ConfigError

if TYPE_CHECKING:
    from panpan.cli_kit.stdout import StdoutWriter
    from panpan.config.locations import Locations
    from panpan.config.sources import Loaded
    from panpan.core.tool import Tool
    from panpan.models.provider_kind import ProviderKinds
    from panpan.session.session import Session
    from panpan.types.events import Event


class Program(ABC):
    """The program that a subcommand is part of."""

    @abstractmethod
    def open_session(self, cwd: str | Path = ".", **wishes: Any) -> "AbstractAsyncContextManager[Session]":
        """Open a session; takes the arguments of `panpan.open_session`."""

    @abstractmethod
    def tools_of_folder(self, cwd: Path, loaded: "Loaded", locations: "Locations") -> "Sequence[Tool[Any]]":
        """Return the tools that a session in a folder would have, to be listed and judged by; none can be run.

        Args:
            cwd: The workspace, canonical.
            loaded: Its settings.
            locations: Places of panpan's own files.
        """

    @abstractmethod
    def known_tools(self) -> Sequence[str]:
        """Return the names of the tools that sessions have, whatever the folder and its settings."""

    @property
    @abstractmethod
    def provider_kinds(self) -> "ProviderKinds":
        """Return the kinds of models that its features bring along."""

    @abstractmethod
    def printer(self, out: "StdoutWriter", *, has_colour: bool) -> "Callable[[Event], Awaitable[None]]":
        """Return a function that prints the events of a turn as they come, as `panpan --plain` does."""


def program_of(ctx: click.Context) -> Program:
    """Return the program that runs a command.

    Raises:
        ConfigError: The command was called apart from `panpan`.
    """
    if (program := ctx.find_object(Program)) is None:
        raise ConfigError(f"{ctx.command_path} needs panpan around it; run: panpan {ctx.command.name}")
    return program


def run_panpan(ctx: click.Context, arguments: Sequence[str]) -> int:
    """Run `panpan` with other arguments, in the place of a command, and return its exit code."""
    code = ctx.find_root().command.main(list(arguments), prog_name="panpan", standalone_mode=False)
    return code if isinstance(code, int) else 0
