"""The agent definitions that are shipped: their form, that they name tools that exist, and that panpan finds them."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

import panpan
from panpan.capabilities.subagents.definitions.load import AgentDefinitions, shipped_definitions
from tests.fakes.every_tool import every_tool

FOLDER = Path(__file__).parents[4] / "agents"
DEFINITIONS = sorted(FOLDER.glob("*.md"))
KEYS = {"name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "color"}
MODES = {"default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"}
CHANGING_TOOLS = {tool.name for tool in every_tool() if tool.notes_changes or tool.name == "MergeWorktree"}
LOOKING_IN_PLAN_MODE = {"LSP"}
"""Tools whose calls mostly only look; plan mode denies the other calls, as with Bash."""


def run_parser(path: Path) -> tuple[Mapping[str, str], str]:
    """The front matter, one `key: value` a line, and the body."""
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None, f"{path.name} has no front matter"
    lines = [line.partition(": ") for line in match[1].splitlines()]
    assert all(separator and value.strip() for _, separator, value in lines), match[1]
    assert len({key for key, _, _ in lines}) == len(lines)
    return {key: value.strip() for key, _, value in lines}, match[2].strip()


def tools_of(head: Mapping[str, str], key: str = "tools") -> set[str]:
    return {name.strip() for name in head.get(key, "").split(",") if name.strip()}


def test_shipped_agents_are_listed() -> None:
    names = ["code-reviewer", "explore", "general-purpose", "plan", "reproduce", "test-runner"]

    assert [path.stem for path in DEFINITIONS] == names
    assert [definition.name for definition in shipped_definitions()] == names


def test_shipped_agents_are_read_as_written() -> None:
    for definition in shipped_definitions():
        head, body = run_parser(FOLDER / f"{definition.name}.md")
        assert definition.description == head["description"]
        assert definition.prompt == body
        assert set(definition.access.tools or ()) == tools_of(head)
        assert definition.access.permission_mode == head.get("permissionMode")
        assert (definition.model.name, definition.source) == ("inherit", "panpan")


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_shipped_agent_has_a_portable_head_and_a_body(path: Path) -> None:
    head, body = run_parser(path)

    assert head.keys() <= KEYS
    assert {"name", "description"} <= head.keys()
    assert head["name"] == path.stem
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert len(head["description"]) <= 1024
    assert ": " not in head["description"], "YAML would read a mapping there"
    assert head.get("permissionMode", "default") in MODES
    assert len(body) > 500


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_shipped_agent_names_only_tools_that_exist(path: Path) -> None:
    head, _ = run_parser(path)
    known = {tool.name for tool in every_tool()}

    assert tools_of(head) | tools_of(head, "disallowedTools") <= known


@pytest.mark.parametrize("name", ["explore", "plan", "code-reviewer"])
def test_looking_agents_have_no_tool_that_changes_files(name: str) -> None:
    head, _ = run_parser(FOLDER / f"{name}.md")

    assert tools_of(head)
    assert not tools_of(head) & CHANGING_TOOLS - LOOKING_IN_PLAN_MODE
    assert head["permissionMode"] == "plan", "Bash could change files in any other mode"


@pytest.mark.parametrize("name", ["reproduce", "test-runner"])
def test_running_agents_have_no_tool_that_edits(name: str) -> None:
    head, _ = run_parser(FOLDER / f"{name}.md")

    assert tools_of(head)
    assert not tools_of(head) & CHANGING_TOOLS


def test_reproduce_layers_are_data_from_packages_to_hardware() -> None:
    _, body = run_parser(FOLDER / "reproduce.md")
    (block,) = re.findall(r"^```toml\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)

    layers = tomllib.loads(block)["layer"]

    assert [layer["name"] for layer in layers] == [
        "Python packages",
        "Binary and ABI",
        "Runtime toolkit",
        "Operating system and driver",
        "Hardware",
    ]
    for layer in layers:
        assert layer.keys() == {"name", "holds", "fits", "look", "signs"}
        assert len(layer["look"]) >= 4
        assert len(layer["signs"]) >= 5


async def test_session_loads_every_source_and_names_broken_files(
    tmp_path: Path,
) -> None:
    tape = tmp_path / "tape.toml"
    tape.write_text('version = 1\n[[reply]]\ntext = "hello"\n')
    (tmp_path / "project").mkdir()
    folder = tmp_path / "home" / "agents"
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("---\nname: mine\ndescription: d\n---\np")
    (folder / "broken.md").write_text("---\nname: broken\ndescription: d\nmaxTurns: x\n---\np")
    warnings: list[str] = []

    opening = panpan.open_session(
        tmp_path / "project",
        overrides={"model": f"cassette:{tape}"},
        agents={"quick": {"description": "d", "prompt": "p"}},
        env={"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")},
        warn=warnings.append,
    )
    async with opening as session:
        names = {one.name for one in session[AgentDefinitions].all}

    assert {"mine", "quick", "reproduce"} <= names
    assert "broken" not in names
    assert len([warning for warning in warnings if f"{folder}/broken.md:4: maxTurns" in warning]) == 1
