from itertools import permutations

import pytest

from panpan.core.tool import enabled_tools
from tests.fakes.tools import FakeTool

TOOLS = [FakeTool(name) for name in ("Read", "Edit", "Bash", "mcp__git__log", "mcp__git__push", "mcp__web__get")]


def names(patterns: dict[str, bool], disallowed: tuple[str, ...] = ()) -> list[str]:
    return [tool.name for tool in enabled_tools(TOOLS, patterns, disallowed=disallowed)]


def test_enabled_tools_without_patterns_are_all_in_order() -> None:
    assert names({}) == ["Read", "Edit", "Bash", "mcp__git__log", "mcp__git__push", "mcp__web__get"]


def test_wildcard_switches_all_matching_tools() -> None:
    assert names({"mcp__*": False}) == ["Read", "Edit", "Bash"]
    assert names({"*": False}) == []
    assert names({"????": False}) == ["mcp__git__log", "mcp__git__push", "mcp__web__get"]


@pytest.mark.parametrize("order", list(permutations(["*", "mcp__git__*", "mcp__git__log"])))
def test_most_specific_pattern_decides_in_any_order(order: tuple[str, ...]) -> None:
    is_on = {"*": False, "mcp__git__*": True, "mcp__git__log": False}

    assert names({pattern: is_on[pattern] for pattern in order}) == ["mcp__git__push"]


def test_equally_specific_patterns_switch_a_tool_off() -> None:
    assert names({"Rea*": True, "*ead": False, "*": False, "Edit": True}) == ["Edit"]


def test_deny_rule_without_parentheses_removes_the_tool() -> None:
    assert names({"Bash": True}, ("Bash", "Edit(/src/**)", "mcp__git__*")) == ["Read", "Edit", "mcp__web__get"]


@pytest.mark.parametrize(
    ("patterns", "disallowed"),
    [({"bash": False}, ()), ({}, ("BASH",)), ({"*": True, "ba*": False}, ()), ({"Bash": True, "bash": False}, ())],
)
def test_enabled_tools_removes_a_tool_in_any_case(patterns: dict[str, bool], disallowed: tuple[str, ...]) -> None:
    assert "Bash" not in names(patterns, disallowed)


def test_unknown_tool_name_is_no_error() -> None:
    assert names({"WebFetch": False, "Read": False, "mcp__*": False}) == ["Edit", "Bash"]
