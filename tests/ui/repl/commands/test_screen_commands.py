from pathlib import Path

from panpan.config.settings import Settings
from tests.ui.repl.commands.command_fixtures import terminal_in, type_in


async def test_a_theme_can_be_named(tmp_path: Path) -> None:
    assert (await type_in(terminal_in(tmp_path / "p"), "/theme Light")).theme.name == "light"


async def test_a_theme_can_be_picked_and_the_one_in_use_is_marked(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", picks=2), "/theme")

    assert [option.label for option in terminal.options if option.is_current] == ["dark"]
    assert terminal.theme.name == terminal.options[2].label


async def test_a_theme_that_does_not_exist_changes_nothing(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/theme neon")

    assert terminal.theme.name == "dark"
    assert "high-contrast" in terminal.text


async def test_vi_keys_are_switched_and_the_new_state_is_said(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    await type_in(terminal, "/vim")
    assert "vi keys are on" in terminal.text

    await type_in(terminal, "/vim")
    assert "vi keys are off" in terminal.text


async def test_the_status_line_says_how_it_is_set(tmp_path: Path) -> None:
    settings = Settings.model_validate({"ui": {"status_line": "my-line --short"}})

    terminal = await type_in(terminal_in(tmp_path / "p", settings=settings, width=200), "/statusline")

    assert "my-line --short" in terminal.text
    assert 'status_line = "' in terminal.text
