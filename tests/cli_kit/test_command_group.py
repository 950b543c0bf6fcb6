from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from panpan.cli.main import COMMANDS

GROUPS = [
    group for group in (import_module(place).command for place, _ in COMMANDS.values()) if hasattr(group, "commands")
]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_the_help_of_a_group_cuts_no_sentence_short(group: click.Group) -> None:
    result = CliRunner().invoke(group, ["--help"], terminal_width=50)

    _, heading, commands = result.output.partition("Commands:")
    assert heading
    assert "..." not in commands
