"""The menu of settings: what it offers, changes and saves; and all settings, with where each comes from."""

import tomllib
from pathlib import Path
from typing import Any

from panpan.config.locations import Locations
from panpan.config.settings import Settings, settings_type
from panpan.errors import ConfigError
from panpan.faces.terminal.commands.config_command import choices
from panpan.permissions.rules.rules import parse_rule
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, terminal_in, type_in
from tests.fakes.settings import settings_with


async def choosing(terminal: FakeTerminal, *wants: str) -> FakeTerminal:
    """Open the menu, pick one after the other, and leave it."""
    terminal.wants = [*wants]
    return await type_in(terminal, "/config")


async def all_settings(terminal: FakeTerminal) -> FakeTerminal:
    """Pick the row of all settings, and show what is read there."""
    await choosing(terminal, "All settings")
    terminal.show(*terminal.read_lines)
    return terminal


def settings_file(terminal: FakeTerminal) -> Path:
    return Path(terminal.env["PANPAN_HOME"]) / "settings.toml"


def saved(terminal: FakeTerminal) -> dict[str, Any]:
    return tomllib.loads(settings_file(terminal).read_text())


def test_choices_are_made_of_the_models_of_the_settings() -> None:
    found = {".".join(one.key): one for one in choices(settings_type())}

    assert found["ui.vim"].values == (False, True)
    assert found["ui.vim"].help == "The editor has the keys of vi"
    assert list(found["effort"].values) == ["low", "medium", "high", "xhigh", "max", None]
    assert "bell" in found["ui.notify"].values
    assert "snapshots.enabled" in found, "those of features, too"
    assert not {"version", "limits.processes", "max_rounds", "base_url", "api_key"} & {*found}
    assert all(one.help for one in found.values())


async def test_switch_is_turned_and_saved_and_the_menu_comes_again(tmp_path: Path) -> None:
    terminal = await choosing(terminal_in(tmp_path / "p", width=200), "ui.vim: false", "ui.vim: true", "ui.vim: false")

    assert terminal.has_vim
    assert saved(terminal)["ui"] == {"vim": True}
    assert f"ui.vim is true, saved in {settings_file(terminal)}\n" in terminal.text


async def test_value_is_chosen_used_at_once_and_saved(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)

    await choosing(
        terminal, "effort: not set", "high", "thinking: false", "ui.theme", "light", "permission.mode", "plan"
    )

    session = terminal.session
    assert (session.effort, session.thinks, session.permission_mode) == ("high", True, "plan")
    assert terminal.theme.name == "light"
    assert saved(terminal) == {
        "version": 1, "effort": "high", "thinking": True, "ui": {"theme": "light"}, "permission": {"mode": "plan"}
    }  # fmt: skip


async def test_value_is_taken_away_again(tmp_path: Path) -> None:
    terminal = await choosing(terminal_in(tmp_path / "p"), "effort: not set", "max", "effort: max", "not set")

    assert terminal.session.effort is None
    assert saved(terminal) == {"version": 1}


async def test_model_is_chosen_from_the_list_of_models(tmp_path: Path) -> None:
    settings = settings_with(providers={"lab": {"base_url": "http://127.0.0.1:9/v1", "models": ["a", "b"]}})
    terminal = await choosing(terminal_in(tmp_path / "p", settings=settings), "model: not set", "lab/b")

    assert terminal.session.model == "lab/b"
    assert saved(terminal)["model"] == "lab/b"


async def test_setting_that_counts_later_says_so(tmp_path: Path) -> None:
    terminal = await choosing(terminal_in(tmp_path / "p", width=200), "ui.notify: auto", "bell")

    assert terminal.text.endswith("; it counts when panpan starts next")


async def test_stronger_setting_is_named_with_its_value(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200, env={"PANPAN_EFFORT": "low"})
    await choosing(terminal, "effort: low", "high")

    assert terminal.text.endswith("; but PANPAN_EFFORT is stronger and says low")


async def test_setting_that_the_session_refuses_is_not_saved(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)

    def refuse(mode: str) -> None:
        raise ConfigError("auto mode needs the sandbox: there is none")

    terminal.session.set_permission_mode = refuse
    await choosing(terminal, "permission.mode", "auto")

    assert "permission.mode stays default: auto mode needs the sandbox" in terminal.text
    assert not settings_file(terminal).exists()


async def test_project_file_that_sets_a_value_is_the_one_changed(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)
    local = Locations.find(tmp_path / "p", terminal.env).local_settings
    local.parent.mkdir(parents=True)
    local.write_text('[ui]\nnotify = "off"\n')
    await choosing(terminal, "ui.notify: off", "bell")

    assert tomllib.loads(local.read_text()) == {"ui": {"notify": "bell"}}


async def test_config_shows_the_settings_and_where_they_come_from(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", env={"PANPAN_MODEL": "cassette:tape.toml"})

    terminal = await all_settings(terminal)

    assert "PANPAN_MODEL" in terminal.text
    assert "permission.mode" in terminal.text


async def test_module_in_the_folder_is_not_run_in_panpans_place(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    for name in ("panpan", "click"):
        (tmp_path / "p" / f"{name}.py").write_text("open('was-run', 'w').close()")

    terminal = await all_settings(terminal)

    assert not (tmp_path / "p" / "was-run").exists()
    assert "permission.mode" in terminal.text


async def test_config_says_what_is_otherwise_in_this_session(tmp_path: Path) -> None:
    settings = Settings.model_validate({"max_rounds": 7, "permission": {"mode": "plan"}})
    terminal = terminal_in(tmp_path / "p", width=200, settings=settings)
    terminal.session.model = "other"
    terminal.session.permission_mode = "acceptEdits"
    terminal.session.effort = "high"

    terminal = await all_settings(terminal)

    new, this = terminal.text.split("This session has:")
    assert 'permission.mode = "default"' in new
    rows = dict(row.split(maxsplit=1) for row in this.strip().split("\n"))
    assert rows == {
        "model": "other, since a test",
        "permission.mode": "acceptEdits",
        "permission.allow": "none",
        "effort": "high",
        "thinking": "false",
        "max_rounds": "7",
    }


async def test_config_shows_the_rules_answered_in_this_session(tmp_path: Path) -> None:
    settings = Settings.model_validate({"permission": {"allow": ["Edit(/a.txt)"]}})
    terminal = terminal_in(tmp_path / "p", width=200, settings=settings)
    gate = terminal.session.gate
    gate.rules.allow = [parse_rule("Bash(make *)", "your answer"), parse_rule("Edit(/b.txt)", "your answer")]

    terminal = await all_settings(terminal)

    this = terminal.text.split("This session has:")[1]
    (row,) = [row for row in this.split("\n") if "permission.allow" in row]
    assert row.split(maxsplit=1)[1] == "Bash(make *), Edit(/b.txt)", "what counts now, and not what was read at first"
