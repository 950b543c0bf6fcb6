"""The agent definitions that are shipped: their form, and that they name only tools that exist."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from panpan.tools.registry import all_tools

FOLDER = Path(__file__).parent.parent / "agents"
DEFINITIONS = sorted(FOLDER.glob("*.md"))
KEYS = {"name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns"}
MODES = {"default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"}
CHANGING_TOOLS = {tool.name for tool in all_tools() if tool.tool_class == "write"}


def taken_apart(path: Path) -> tuple[Mapping[str, str], str]:
    """The front matter, one `key: value` a line, and the body."""
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None, f"{path.name} has no front matter"
    lines = [line.partition(": ") for line in match[1].splitlines()]
    assert all(separator and value.strip() for _, separator, value in lines), match[1]
    assert len({key for key, _, _ in lines}) == len(lines)
    return {key: value.strip() for key, _, value in lines}, match[2].strip()


def tools_of(head: Mapping[str, str], key: str = "tools") -> set[str]:
    return {name.strip() for name in head.get(key, "").split(",") if name.strip()}


def test_the_agents_that_are_shipped_are_these() -> None:
    assert [path.stem for path in DEFINITIONS] == ["explore", "general-purpose", "plan"]


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_definition_has_a_head_that_other_agents_read_and_a_body(path: Path) -> None:
    head, body = taken_apart(path)

    assert head.keys() <= KEYS
    assert {"name", "description"} <= head.keys()
    assert head["name"] == path.stem
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert len(head["description"]) <= 1024
    assert ": " not in head["description"], "YAML would read a mapping there"
    assert head.get("permissionMode", "default") in MODES
    assert len(body) > 500


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_definition_names_only_tools_that_exist(path: Path) -> None:
    head, _ = taken_apart(path)
    known = {tool.name for tool in all_tools()}

    assert tools_of(head) | tools_of(head, "disallowedTools") <= known


@pytest.mark.parametrize("name", ["explore", "plan"])
def test_agents_that_only_look_have_no_tool_that_changes_files(name: str) -> None:
    head, _ = taken_apart(FOLDER / f"{name}.md")

    assert tools_of(head)
    assert not tools_of(head) & CHANGING_TOOLS
    assert head["permissionMode"] == "plan", "Bash could change files in any other mode"
