"""Every theme has the same roles, and one without colour has none."""

import re
from typing import get_args

import pytest

from panpan.faces.terminal.screen.theme import AGENT_ROLES, Theme, ThemeName
from panpan.types.role import Role


@pytest.mark.parametrize("name", get_args(ThemeName))
@pytest.mark.parametrize("role", get_args(Role))
def test_painted_text_ends_as_it_began(name: ThemeName, role: Role) -> None:
    assert re.fullmatch(r"text|\x1b\[[0-9;]+mtext\x1b\[0m", Theme(name).paint(role, "text"))


@pytest.mark.parametrize("role", get_args(Role))
def test_plain_theme_has_no_colour(role: Role) -> None:
    codes = re.findall(r"\x1b\[([0-9;]+)m", Theme("plain").paint(role, "text"))

    assert {code for found in codes for code in found.split(";")} <= {"0", "1", "2"}


@pytest.mark.parametrize("name", ["dark", "light"])
def test_colours_of_subagents_are_told_apart(name: ThemeName) -> None:
    assert len({Theme(name).paint(role, "x") for role in AGENT_ROLES.values()}) == len(AGENT_ROLES)


def test_empty_text_is_not_painted() -> None:
    assert Theme("dark").paint("bad", "") == ""
