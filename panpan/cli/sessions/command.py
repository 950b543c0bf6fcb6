"""`panpan sessions`: commands for sessions that are not open. Alone it lists them.

Each command is imported when it is called.
"""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from panpan.cli_kit.commands import chosen_folder
from panpan.config.locations import Locations

COMMANDS = {
    "archive": ("changes", "Archive sessions, or bring them back."),
    "doctor": ("changes", "Check sessions, and write repaired copies."),
    "export": ("changes", "Write a session as Markdown, HTML, JSON or a transcript."),
    "import": ("changes", "Import a transcript of Claude Code, or an export."),
    "list": ("listing", "List the sessions of this project, newest first."),
    "search": ("listing", "Search the conversations of sessions."),
    "show": ("listing", "Print the conversation of a session."),
}
"""Module with `NAME_command`, and line in the help, by name."""

_HELP_OPTIONS = ("-h", "--help")


class SessionsGroup(click.Group):
    """Group of the commands; other arguments after `sessions` are those of `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_list = not args or (args[0].startswith("-") and args[0] not in _HELP_OPTIONS)
        if ctx.resilient_parsing:  # shell completion of a command name
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, ["list", *args] if is_list else args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"panpan.cli.sessions.{COMMANDS[cmd_name][0]}"), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group("sessions", cls=SessionsGroup)
def command() -> None:
    """List, search, show, export, import, repair and archive sessions.

    Alone, or with options of `list`, it lists the sessions of this project.
    """


CWD = click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder of the sessions.")
ALL = click.option("--all", "is_all", is_flag=True, help="All projects, with their folders.")
ARCHIVED = click.option("--archived", "is_archived", is_flag=True, help="Only archived sessions.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


_LEAST_CHARS = 20
"""Fewest characters of each text, however narrow the terminal."""


def cut(text: str, width: int) -> str:
    """Return a text, cut to the width with an ellipsis."""
    width = max(width, _LEAST_CHARS)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def limit(help_: str = "Show at most N.") -> Callable[[Any], Any]:
    """Return the option for the number of results."""
    return click.option(
        "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help=help_
    )


def locations_of(ctx: click.Context, cwd: Path | None) -> Locations:
    """Return the places of the folder that a command means.

    Raises:
        ConfigError: There is no such folder, or no panpan home.
    """
    return Locations.find(chosen_folder(ctx, cwd), os.environ)


def log_of(locations: Locations, wanted: str) -> Path:
    """Return the log of the session that `wanted` means; an archived one is only found by its id.

    Raises:
        SessionError: There is no such session, or there are several.
    """
    from panpan.errors import SessionError
    from panpan.session.stored.finding import find_session
    from panpan.session.stored.store import archived_logs

    try:
        return find_session(locations.home, locations.sessions_folder, wanted)
    except SessionError:
        away = [path for path in archived_logs(locations.home) if wanted and path.stem.startswith(wanted)]
        if len(away) == 1:
            return away[0]
        raise


def logs_of(locations: Locations, *, is_all: bool, is_archived: bool = False) -> list[Path]:
    """Return the logs for a list, the last written first."""
    from panpan.session.stored.store import ARCHIVE, archived_logs, logs_of_all_projects, newest_first

    if is_all:
        return newest_first((archived_logs if is_archived else logs_of_all_projects)(locations.home))
    folder = locations.sessions_folder / ARCHIVE if is_archived else locations.sessions_folder
    return newest_first(folder.glob("*.jsonl"))


def folders_of(locations: Locations, *, is_all: bool) -> list[Path]:
    """Return the folders of sessions, of this project or of all."""
    return sorted(locations.home.glob("projects/*/sessions")) if is_all else [locations.sessions_folder]
