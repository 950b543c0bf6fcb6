"""Parts that subcommands share: their folder, groups of commands, and the program around them."""

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panpan.cli_kit.options import RUN_OPTIONS, is_taken, overrides_of
from panpan.errors import ConfigError

if TYPE_CHECKING:
    from panpan.cli_kit.failures import StdoutWriter
    from panpan.cli_kit.plugin_parts import PartReport
    from panpan.cli_kit.serving import HttpPlace, ServedPlace
    from panpan.config.locations import Locations
    from panpan.config.places import Places
    from panpan.config.sources import Loaded
    from panpan.core.tool import Tool
    from panpan.models.provider_kind import ProviderKinds
    from panpan.permissions.folder_gate import FolderGate
    from panpan.session.session import Session
    from panpan.types.events import Event


def chosen_folder(ctx: click.Context, cwd: Path | None) -> Path:
    """Return the folder named by the command itself, else by `panpan`, else the current one."""
    outer = next((context.params["cwd"] for context in _above(ctx) if context.params.get("cwd")), None)
    return cwd or Path(outer or "")


def _above(ctx: click.Context) -> list[click.Context]:
    contexts = []
    while ctx.parent is not None:
        ctx = ctx.parent
        contexts.append(ctx)
    return contexts


_MAX_SENTENCE_CHARS = 300


class CommandGroup(click.Group):
    """Group whose list of commands shows whole help sentences; click's cuts them to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, command) for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))]
        rows = [(name, command.get_short_help_str(_MAX_SENTENCE_CHARS)) for name, command in commands]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class CommandOfSessions(click.Command):
    """Command that opens sessions. It says where their options belong, which many would write behind its name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            root, name = ctx.find_root(), error.option_name
            words = ctx.command_path.removeprefix(f"{root.command_path} ")
            meant = [option.name or "" for option in root.command.params if name in option.opts]
            if not any(is_taken(words.split()[0], option) for option in meant):
                raise
            raise click.UsageError(
                f"there is no option {name} of {self.name}; those of sessions stand before {words.split()[0]}: "
                f"panpan {name} … {words}",
                ctx,
            ) from error


class Program(ABC):
    """The program that a subcommand is part of."""

    @abstractmethod
    def open_session(self, cwd: str | Path = ".", **options: Any) -> "AbstractAsyncContextManager[Session]":
        """Open a session; takes the arguments of `panpan.open_session`."""

    @abstractmethod
    def tools_of_folder(self, cwd: Path, loaded: "Loaded", locations: "Locations") -> "Sequence[Tool[Any]]":
        """Return the tools that a session in a folder would have, for lists and decisions; they cannot be run.

        `cwd`: the workspace, canonical.
        """

    @abstractmethod
    def known_tools(self) -> Sequence[str]:
        """Return the names of all tools of sessions, independent of the folder and its settings."""

    @abstractmethod
    def parts_of_plugin(self, places: "Places") -> "Sequence[PartReport]":
        """Return what the features of panpan make of the only plug-in in the places."""

    @property
    @abstractmethod
    def provider_kinds(self) -> "ProviderKinds":
        """Return the kinds of model providers of its features."""

    @abstractmethod
    def serve(self, place: "ServedPlace", http: "HttpPlace | None", say: "Callable[[str], None]") -> None:
        """Serve clients of the Model Context Protocol; see `faces.mcp_server.transports.serve`."""

    @abstractmethod
    def printer(self, out: "StdoutWriter", *, has_colour: bool) -> "Callable[[Event], Awaitable[None]]":
        """Return a function that prints the events of a turn as they come, like `panpan --plain`."""


def program_of(ctx: click.Context) -> Program:
    """Return the program that runs a command. Raise ConfigError if the command was called apart from `panpan`."""
    if (program := ctx.find_object(Program)) is None:
        raise ConfigError(f"{ctx.command_path} is a command of panpan; run: panpan {ctx.command.name}")
    return program


def run_panpan(ctx: click.Context, arguments: Sequence[str]) -> int:
    """Run `panpan` with other arguments in place of a command, and return its exit code."""
    code = ctx.find_root().command.main(list(arguments), prog_name="panpan", standalone_mode=False)
    return code if isinstance(code, int) else 0


def settings_of_folder(ctx: click.Context, cwd: Path | None) -> "tuple[Path, Loaded, Locations]":
    """Return the workspace, its settings, and the locations of panpan's files.

    Raises:
        ConfigError: The folder does not exist, or a setting is wrong.
    """
    from panpan.config.locations import Locations
    from panpan.config.sources import load_settings

    folder = chosen_folder(ctx, cwd).expanduser()
    workspace = folder.resolve()
    if not workspace.is_dir():
        raise ConfigError(f"the working directory {folder} is not a folder")
    locations = Locations.find(workspace, os.environ)
    options = ctx.meta.get(RUN_OPTIONS)
    loaded = load_settings(workspace, os.environ, overrides_of(options) if options else {}, locations)
    return workspace, loaded, locations


def gate_of_folder(ctx: click.Context, cwd: Path | None) -> "FolderGate":
    """Return the gate of the chosen folder. Raise ConfigError if the folder, a setting or a rule is wrong."""
    from panpan.permissions.folder_gate import FolderGate

    workspace, loaded, locations = settings_of_folder(ctx, cwd)
    tools = program_of(ctx).tools_of_folder(workspace, loaded, locations)
    return FolderGate(workspace, loaded, locations, tools)
