"""Subcommands of `panpan`, and other modules of features for the command line.

Nothing here imports a feature by its name, so that each can be left out: it is found by the files in its folder. A
feature has subcommands if it has a `cli.py`, whose docstring has a line for each with `panpan NAME` and its help; the
command is the attribute NAME of the module. So all are listed without an import. Other packages name their commands in
the entry point group `panpan.commands`.
"""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from panpan.cli_kit.commands import Program

if TYPE_CHECKING:
    from panpan.cli_kit.failures import StdoutWriter
    from panpan.cli_kit.plugin_parts import PartReport
    from panpan.cli_kit.serving import HttpPlace, ServedPlace
    from panpan.config.locations import Locations
    from panpan.config.places import Places
    from panpan.config.sources import Loaded
    from panpan.core.tool import Tool
    from panpan.models.provider_kind import ProviderKinds
    from panpan.session.session import Session
    from panpan.types.events import Event

ENTRY_POINTS = "panpan.commands"

_CAPABILITIES = "panpan.capabilities"
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "capabilities")  # noqa: PTH118, PTH120
_LINE = r"(?m)^`panpan ([a-z][a-z-]*)`: ?(.*)$"
"""Line of a docstring with the name of a command and its help, which is empty where another's mentions it."""
_HEAD_CHARS = 2_000
"""Characters of a file that are read for its docstring."""
_NAME = r"[a-z][a-z0-9_-]*"


class Subcommand(NamedTuple):
    """A subcommand of `panpan`; a plain tuple, since making others would slow down `--help`."""

    module: str
    attribute: str
    help: str
    """Line in the help; empty if another command's help mentions it."""

    def load(self) -> click.Command:
        """Import it."""
        command = getattr(import_module(self.module), self.attribute)
        assert isinstance(command, click.Command)
        return command


_OWN: Mapping[str, Subcommand] = {
    name: Subcommand(
        module if module.startswith("panpan.") else f"panpan.cli.{module}",
        attribute or "command",
        text,
    )
    for name, place, text in (
        ("acp", "acp_command", "Be the agent of an editor; serve offers sessions over HTTP."),
        ("attach", "attach_command", ""),
        ("batch", "panpan.batch.cli", ""),
        ("capabilities", "capabilities_command", "List the features of panpan, packages and folders."),
        ("ci", "ci.command", ""),
        ("completion", "help_command:completion", "Print completion for a shell; man prints the manual page."),
        ("config", "config_command", "Show the settings and where they come from."),
        ("daemon", "daemon.command", "Make headless runs begin sooner; batch runs campaigns of them."),
        ("debug", "debug_command", ""),
        ("demo", "demo_command", "Watch panpan fix a bug, without a key or network."),
        ("doctor", "doctor_command", "Check what panpan finds on this machine."),
        ("login", "login_command:login", "Keep the API key of a provider; logout removes it."),
        ("logout", "login_command:logout", ""),
        ("man", "help_command:man", ""),
        ("repro", "panpan.repro.cli", ""),
        ("reproduce", "panpan.repro.cli:reproduce", "Reproduce the numbers of a paper; repro checks claims.toml."),
        ("serve", "serve_command", ""),
        ("sessions", "sessions.command", "List and export sessions; attach joins, receipts checks one."),
        ("trust", "trust_command", "Show and change which projects you trust."),
    )
    for module, _, attribute in [place.partition(":")]
}


@cache
def subcommands() -> Mapping[str, Subcommand]:
    """Return panpan's own subcommands by name."""
    return dict(sorted({**_OWN, **dict(_of_features())}.items()))


def foreign_subcommand(name: str) -> click.Command | None:
    """Return another package's subcommand of a name; None if there is none, or panpan itself has one.

    Raises:
        click.UsageError: The subcommand cannot be imported, or is no command.
    """
    if name in subcommands() or not re.fullmatch(_NAME, name):
        return None
    from importlib.metadata import entry_points

    for found in entry_points(group=ENTRY_POINTS, name=name):
        try:
            command = found.load()
        except Exception as error:  # foreign code may raise anything
            raise click.UsageError(f"the command {name} of another package ({found.value}) fails: {error}") from error
        if not isinstance(command, click.Command):
            raise click.UsageError(f"the command {name} of another package ({found.value}) is not a click command")
        return command
    return None


def feature_modules(name: str) -> Iterator[ModuleType]:
    """Yield the modules of a name in the folders of features, such as `doctor.py`, sorted by feature."""
    for feature in sorted(os.listdir(_FOLDER)):  # noqa: PTH208
        if os.path.exists(f"{_FOLDER}/{feature}/{name}.py"):  # noqa: PTH110
            yield import_module(f"{_CAPABILITIES}.{feature}.{name}")


def _of_features() -> Iterator[tuple[str, Subcommand]]:
    """Yield the subcommands of features."""
    for feature in os.listdir(_FOLDER):  # noqa: PTH208
        try:
            with open(f"{_FOLDER}/{feature}/cli.py", encoding="utf-8") as file:  # noqa: PTH123
                head = file.read(_HEAD_CHARS)
        except OSError:  # the feature has no cli.py
            continue
        docstring = head.partition('"""')[2].partition('"""')[0]
        for name, text in re.findall(_LINE, docstring):
            module = f"{_CAPABILITIES}.{feature}.cli"
            yield name, Subcommand(module, name.replace("-", "_"), text)


class Panpan(Program):
    """The program for subcommands. Each part is imported when it is used, so that others do not pay for it."""

    def open_session(self, cwd: str | Path = ".", **options: Any) -> "AbstractAsyncContextManager[Session]":
        from panpan.api import open_session

        return open_session(cwd, **options)

    def tools_of_folder(self, cwd: Path, loaded: "Loaded", locations: "Locations") -> "Sequence[Tool[Any]]":
        from panpan.app import tools_of_folder

        return tools_of_folder(cwd, loaded, locations)

    def known_tools(self) -> Sequence[str]:
        from panpan.app import known_tools

        return known_tools()

    @property
    def provider_kinds(self) -> "ProviderKinds":
        from panpan.app import PROVIDER_KINDS

        return PROVIDER_KINDS

    def serve(self, place: "ServedPlace", http: "HttpPlace | None", say: "Callable[[str], None]") -> None:
        import anyio

        from panpan.cli.start import begin_collection
        from panpan.faces.mcp_server.server import PanpanServer
        from panpan.faces.mcp_server.transports import serve
        from panpan.system.processes.own_process import hide_process

        hide_process(os.environ)
        tools = [tool for module in feature_modules("served_tools") for tool in module.TOOLS]
        server = PanpanServer(place, tools, say)
        begin_collection()
        anyio.run(serve, server, http, say)

    def printer(self, out: "StdoutWriter", *, has_colour: bool) -> "Callable[[Event], Awaitable[None]]":
        from panpan.faces.plain.line_face import LineFace

        return LineFace(out, has_colour=has_colour).show

    def parts_of_plugin(self, places: "Places") -> "Sequence[PartReport]":
        return [module.READ(places) for module in feature_modules("plugin_parts")]
