"""Commands about panpan and the machine, and their truth for the running session."""

import platform
from pathlib import Path

import pytest

from panpan.config.stored_keys import StoredKeys
from panpan.errors import PanpanError
from panpan.version import __version__
from tests.config.test_stored_keys import NoKeyring
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


async def test_doctor_shows_its_verdict_whatever_it_is(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p", width=60), "/doctor")

    assert "panpan" in terminal.text
    assert "python" in terminal.text
    assert terminal.widest <= 60


async def test_doctor_describes_model_and_terminal_of_this_session(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=100, env={"TERM": "xterm-256color"})

    await type_in(terminal, "/doctor")

    assert "xterm-256color, 100 cells wide" in terminal.text
    assert "not a terminal" not in terminal.text
    assert "scripted, since a test" in terminal.text
    assert "none is chosen" not in terminal.text


async def test_doctor_that_fails_is_said_to(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", env={"PANPAN_HOME": "~no-such-user/home"})

    with pytest.raises(PanpanError, match=r"`panpan doctor` failed: .*no-such-user"):
        await type_in(terminal, "/doctor")


@pytest.mark.parametrize("line", ["/feedback it broke with the key sk-ant-api03-secretsecret", "/bug"])
async def test_feedback_writes_a_private_report_and_says_where(tmp_path: Path, line: str) -> None:
    terminal = terminal_in(tmp_path / "p", width=300, env={"ANTHROPIC_API_KEY": "sk-ant-api03-secretsecret"})
    await type_in(terminal, line)

    (report,) = (Path(terminal.env["PANPAN_HOME"]) / "feedback").iterdir()
    assert report.stat().st_mode & 0o777 == 0o600
    assert f"nothing was sent; the report is {report}" in terminal.text
    assert ("it broke with the key" in report.read_text()) == (line != "/bug")
    assert "secretsecret" not in report.read_text()
    for fact in (__version__, platform.platform(), "scripted, since a test", "s1"):
        assert fact in report.read_text()
        assert fact in terminal.text


async def test_feedback_redacts_a_key_of_panpan_login(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    home = Path(terminal.env["PANPAN_HOME"])
    StoredKeys(home, NoKeyring()).keep("groq", "a key of no known shape")
    await type_in(terminal, "/feedback it broke with a key of no known shape")

    (report,) = (home / "feedback").iterdir()
    assert "it broke with [redacted]" in report.read_text()
