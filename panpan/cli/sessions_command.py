"""`panpan sessions`: what can be done with sessions that are not open. Alone it lists them.

Each command is imported when it is called.
"""

from importlib import import_module

import click

COMMANDS = {
    "archive": ("archive_command", "Put sessions away, or bring them back."),
    "doctor": ("doctor_command", "Say what is wrong with sessions, and mend copies."),
    "export": ("export_command", "Write a session as Markdown, HTML, JSON or a transcript."),
    "import": ("import_command", "Take in a transcript of Claude Code, or an export."),
    "list": ("list_command", "List the sessions of this project, newest first."),
    "search": ("search_command", "Find sessions by what was said in them."),
    "show": ("show_command", "Print what was said in a session."),
}
"""By name: the module that has `command`, and its line in the help."""

_HELP_OPTIONS = ("-h", "--help")


class SessionsGroup(click.Group):
    """The commands; what stands behind `sessions` and is none of them are options of `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_list = not args or (args[0].startswith("-") and args[0] not in _HELP_OPTIONS)
        return super().parse_args(ctx, ["list", *args] if is_list else args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"panpan.cli.sessions.{COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group("sessions", cls=SessionsGroup)
def command() -> None:
    """List, search, show, export, import, mend and archive sessions.

    Alone, or with options of `list`, it lists the sessions of this project.
    """
