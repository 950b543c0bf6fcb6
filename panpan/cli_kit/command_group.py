"""A group of commands whose help names each with the whole first sentence of its own, however narrow the terminal."""

import click

_MAX_SENTENCE_CHARS = 300


class CommandGroup(click.Group):
    """As click's, which cuts that sentence to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, command) for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))]
        rows = [(name, command.get_short_help_str(_MAX_SENTENCE_CHARS)) for name, command in commands]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
