"""What panpan says of the machine, and that it is true of the session that runs."""

from pathlib import Path

import pytest

from panpan.errors import PanpanError
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


async def test_doctor_shows_its_verdict_whatever_it_is(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", width=60), "/doctor")

    assert "panpan" in terminal.text
    assert "python" in terminal.text
    assert terminal.widest <= 60


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
