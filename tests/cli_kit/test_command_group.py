import click
import pytest
from click.testing import CliRunner

from panpan.cli.subcommands import subcommands

GROUPS = [group for one in subcommands().values() if isinstance(group := one.load(), click.Group)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_group_help_cuts_no_sentence_short(group: click.Group) -> None:
    result = CliRunner().invoke(group, ["--help"], terminal_width=50)

    _, heading, commands = result.output.partition("Commands:")
    assert heading
    assert "..." not in commands
