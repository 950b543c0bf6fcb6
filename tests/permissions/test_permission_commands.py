from pathlib import Path

import pytest

from panpan.app import slash_commands
from panpan.capabilities.permissions.capability import MODES
from panpan.errors import ConfigError
from panpan.faces.terminal.commands.registry import all_commands, find
from panpan.permissions.gate import ANSWERED, PermissionGate
from panpan.permissions.rules.rules import RuleSource
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


def with_rules(place: str = "~/.panpan/settings.toml", **rules: list[str]) -> PermissionGate:
    return PermissionGate([RuleSource(place, **rules)])


async def test_permissions_command_shows_mode_and_rules(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=40)
    terminal.session.gate.rules = with_rules(allow=["Bash(npm test)"], deny=["Bash(rm \x1b[31m.env)"]).rules

    await type_in(terminal, "/permissions")

    assert "Mode: default" in terminal.text
    assert "allow  Bash(npm test)" in terminal.text
    assert "Bash(rm .env)" in terminal.text
    assert terminal.widest <= 40


async def test_permissions_command_says_if_there_are_no_rules(tmp_path: Path) -> None:
    assert "there are no rules" in (await type_in(terminal_in(tmp_path / "p"), "/permissions")).text


async def test_removed_rule_is_reported_with_its_place(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)
    terminal.session.gate.rules = with_rules(place=ANSWERED, allow=["Bash(npm run *)"]).rules
    terminal.session.gate.rules.allow += with_rules(allow=["Edit"]).rules.allow

    await type_in(terminal, "/permissions remove Bash(npm run *)")
    assert "Bash(npm run *) is removed from this session" in terminal.text
    assert "stays" not in terminal.text

    await type_in(terminal, "/permissions remove Edit")
    assert "Edit stays (allow, from ~/.panpan/settings.toml)" in terminal.text


async def test_remove_without_a_rule_lists_the_removable_ones(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)
    assert "There is none" in (await type_in(terminal, "/permissions remove")).text

    terminal.session.gate.rules = with_rules(place=ANSWERED, allow=["Bash(npm test)"]).rules
    assert "  Bash(npm test)" in (await type_in(terminal, "/permissions remove")).text
    assert "there is no rule Edit" in (await type_in(terminal, "/permissions remove Edit")).text


async def test_mode_can_be_set_in_any_case(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/permissions acceptedits")

    assert terminal.session.permission_mode == "acceptEdits"


async def test_unknown_mode_changes_nothing(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    with pytest.raises(ConfigError, match="bypassPermissions"):
        await type_in(terminal, "/permissions yolo")

    assert terminal.session.permission_mode == "default"


async def test_plan_mode_is_switched_on_and_off(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    await type_in(terminal, "/plan")
    assert terminal.session.permission_mode == "plan"

    await type_in(terminal, "/plan")
    assert terminal.session.permission_mode == "default"


async def test_add_dir_adds_a_folder(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    (tmp_path / "data").mkdir()

    await type_in(terminal, "/add-dir ../data")

    assert terminal.session.folders.all == (tmp_path / "data",)
    assert "data" in terminal.text


async def test_add_dir_without_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        await type_in(terminal_in(tmp_path / "p"), "/add-dir missing")


async def test_add_dir_without_a_path_says_how(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/add-dir")

    assert "/add-dir PATH" in terminal.text
    assert terminal.session.folders.all == ()


async def test_permissions_command_completes_modes_and_removable_rules(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    terminal.session.gate.rules = with_rules(place=ANSWERED, allow=["Bash(make *)"]).rules
    command, _ = find(all_commands(slash_commands()), "/permissions")

    assert command.completions(terminal.session) == [*MODES, "remove Bash(make *)"]
