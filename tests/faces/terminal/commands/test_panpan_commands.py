"""What panpan says of itself, and that it is true of the session that runs."""

from pathlib import Path

import pytest

from panpan.config.settings import Settings
from panpan.errors import PanpanError
from panpan.permissions.rules.rules import parse_rule
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


async def test_config_shows_the_settings_and_where_they_come_from(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=60, env={"PANPAN_MODEL": "cassette:tape.toml"})

    await type_in(terminal, "/config")

    assert "PANPAN_MODEL" in terminal.text
    assert "permission.mode" in terminal.text
    assert terminal.widest <= 60


async def test_a_module_in_the_folder_is_not_run_in_panpans_place(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    for name in ("panpan", "click"):
        (tmp_path / "p" / f"{name}.py").write_text("open('was-run', 'w').close()")

    await type_in(terminal, "/config")

    assert not (tmp_path / "p" / "was-run").exists()
    assert "permission.mode" in terminal.text


async def test_doctor_shows_its_verdict_whatever_it_is(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", width=60), "/doctor")

    assert "panpan" in terminal.text
    assert "python" in terminal.text
    assert terminal.widest <= 60


async def test_config_says_what_is_otherwise_in_this_session(tmp_path: Path) -> None:
    settings = Settings.model_validate({"max_rounds": 7, "permission": {"mode": "plan"}})
    terminal = terminal_in(tmp_path / "p", width=200, settings=settings)
    terminal.session.model = "other"
    terminal.session.permission_mode = "acceptEdits"
    terminal.session.effort = "high"

    await type_in(terminal, "/config")

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


async def test_config_shows_the_rules_that_were_answered_in_this_session(tmp_path: Path) -> None:
    settings = Settings.model_validate({"permission": {"allow": ["Edit(/a.txt)"]}})
    terminal = terminal_in(tmp_path / "p", width=200, settings=settings)
    gate = terminal.session.gate
    gate.rules.allow = [parse_rule("Bash(make *)", "your answer"), parse_rule("Edit(/b.txt)", "your answer")]

    await type_in(terminal, "/config")

    this = terminal.text.split("This session has:")[1]
    (row,) = [row for row in this.split("\n") if "permission.allow" in row]
    assert row.split(maxsplit=1)[1] == "Bash(make *), Edit(/b.txt)", "what counts now, and not what was read at first"


async def test_doctor_tells_of_the_model_and_the_terminal_of_this_session(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=100, env={"TERM": "xterm-256color"})

    await type_in(terminal, "/doctor")

    assert "xterm-256color, 100 cells wide" in terminal.text
    assert "not a terminal" not in terminal.text
    assert "scripted, since a test" in terminal.text
    assert "none is chosen" not in terminal.text


async def test_a_doctor_that_fails_is_said_to(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", env={"PANPAN_HOME": "~no-such-user/home"})

    with pytest.raises(PanpanError, match=r"`panpan doctor` failed: .*no-such-user"):
        await type_in(terminal, "/doctor")
