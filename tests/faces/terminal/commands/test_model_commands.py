from pathlib import Path

import pytest

from panpan.config.settings import Settings
from panpan.errors import ConfigError
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in

KEY = {"ANTHROPIC_API_KEY": "k" * 20}


async def test_named_model_is_used_and_the_reason_is_shown(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/model opus")

    assert terminal.session.model == "opus"
    assert "since the user said so" in terminal.text


async def test_models_are_those_of_the_keys_that_are_there(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", env=KEY), "/model")

    labels = [option.label for option in terminal.options]
    assert "anthropic/claude-sonnet-5-5" in labels
    assert all(label.startswith("anthropic/") for label in labels)
    assert len(labels) == len(set(labels))


async def test_model_says_its_short_name_its_window_and_its_price(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", env=KEY), "/model")

    sonnet = next(option for option in terminal.options if option.label == "anthropic/claude-sonnet-5-5")
    assert sonnet.detail.startswith("sonnet; ")
    assert "1,000,000 tokens" in sonnet.detail
    assert "$2 in, $10 out" in sonnet.detail


async def test_models_of_the_settings_come_first(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"providers": {"lab": {"base_url": "http://127.0.0.1:9/v1", "models": ["big-one"]}}}
    )

    terminal = await type_in(terminal_in(tmp_path / "p", settings=settings, env=KEY, picks=0), "/model")

    assert terminal.options[0].label == "lab/big-one"
    assert terminal.session.model == "lab/big-one"


async def test_model_in_use_is_marked(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", env=KEY)
    terminal.session.model = "claude-opus-5-5"

    await type_in(terminal, "/model")

    assert [option.label for option in terminal.options if option.is_current] == ["anthropic/claude-opus-5-5"]


async def test_model_picker_without_a_choice_changes_nothing(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", env=KEY, picks=None), "/model")

    assert terminal.session.model == "scripted"


async def test_model_command_without_a_key_says_how_to_name_one(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/model")

    assert "scripted, since a test" in terminal.text
    assert "/model NAME" in terminal.text


async def test_effort_can_be_named_picked_and_taken_back(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", picks=1)

    await type_in(terminal, "/effort High")
    assert terminal.session.effort == "high"

    await type_in(terminal, "/effort")
    assert terminal.session.effort == "low"

    await type_in(terminal, "/effort default")
    assert terminal.session.effort is None


@pytest.mark.parametrize("line", ["/effort enormous", "/effort \x1b[2J"])
async def test_unknown_effort_changes_nothing_and_names_the_valid_ones(tmp_path: Path, line: str) -> None:
    terminal = terminal_in(tmp_path / "p")
    terminal.session.effort = "low"

    with pytest.raises(ConfigError, match="medium") as caught:
        await type_in(terminal, line)

    assert terminal.session.effort == "low"
    assert "\x1b[2J" not in str(caught.value)
