import tomllib
from pathlib import Path

import pytest

from panpan.config.locations import Locations
from panpan.config.settings import Settings
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


async def test_theme_can_be_named(tmp_path: Path) -> None:
    assert (await type_in(terminal_in(tmp_path / "p"), "/theme Light")).theme.name == "light"


async def test_theme_can_be_picked_and_the_one_in_use_is_marked(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", picks=3), "/theme")

    (current,) = [option for option in terminal.options if option.is_current]
    assert (current.label, current.detail) == ("auto", "dark here"), "what was chosen, and what that is"
    assert terminal.theme.name == terminal.options[3].label


async def test_theme_that_was_chosen_is_marked_and_not_the_terminals(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", picks=None)
    await type_in(terminal, "/theme dark")
    await type_in(terminal, "/theme")

    assert [option.label for option in terminal.options if option.is_current] == ["dark"]
    assert [option.detail for option in terminal.options if option.detail] == []


async def test_theme_auto_names_the_theme_of_the_terminal(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", width=200), "/theme auto")

    assert "theme: auto, which is light here" in terminal.text


async def test_theme_and_the_keys_are_saved_and_it_is_said_where(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)
    await type_in(terminal, "/theme high-contrast")
    await type_in(terminal, "/vim")

    file = Path(terminal.env["PANPAN_HOME"]) / "settings.toml"
    assert tomllib.loads(file.read_text())["ui"] == {"theme": "high-contrast", "vim": True}
    assert terminal.text.count(f"saved in {file}") == 2


async def test_setting_that_cannot_be_saved_holds_for_now(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=200)
    file = Path(terminal.env["PANPAN_HOME"]) / "settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text("= broken")

    await type_in(terminal, "/theme light")

    assert terminal.theme.name == "light"
    assert f"until you quit, since panpan cannot save it: {file}:1: " in terminal.text
    assert file.read_text() == "= broken"


async def test_theme_that_does_not_exist_changes_nothing(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/theme neon")

    assert terminal.theme.name == "dark"
    assert "high-contrast" in terminal.text


async def test_vi_keys_are_switched_and_the_new_state_is_said(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    await type_in(terminal, "/vim")
    assert "vi keys are on" in terminal.text

    await type_in(terminal, "/vim")
    assert "vi keys are off" in terminal.text


@pytest.mark.parametrize("command", [None, "my-line --short"])
async def test_status_line_says_how_it_is_set(tmp_path: Path, command: str | None) -> None:
    settings = Settings.model_validate({"ui": {"status_line": command}})
    elsewhere = {"PANPAN_HOME": str(tmp_path / "elsewhere")}

    terminal = await type_in(terminal_in(tmp_path / "p", settings=settings, width=400, env=elsewhere), "/statusline")

    assert (command or "panpan's own") in terminal.text
    assert f" in {tmp_path}/elsewhere/settings.toml, and restart panpan" in terminal.text
    assert 'status_line = "' in terminal.text


async def test_status_line_of_one_project_is_set_in_its_settings(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=400)
    places = Locations.find(tmp_path / "p", terminal.env)
    places.local_settings.parent.mkdir(parents=True)
    places.local_settings.write_text('[ui]\nstatus_line = "here"')

    assert f" in {places.shown(places.local_settings)}, " in (await type_in(terminal, "/statusline")).text
