from pathlib import Path

import pytest

from panpan.config.settings import Settings
from panpan.errors import ConfigError
from panpan.types.messages import UserMessage
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in

SECRETS = {"MY_TOKEN": "t" * 20}
SETTINGS = Settings.model_validate({"api_key": "s" * 20})


async def test_exported_session_holds_no_secrets(tmp_path: Path) -> None:
    said = UserMessage.of(f"say hello to {SECRETS['MY_TOKEN']} and {'s' * 20}")
    terminal = terminal_in(tmp_path / "p", said, settings=SETTINGS, env=SECRETS, width=300)

    await type_in(terminal, "/export notes.md")

    path = tmp_path / "p" / "notes.md"
    assert str(path) in terminal.text
    assert "say hello to \\[redacted\\] and" in path.read_text() or "say hello to [redacted] and" in path.read_text()
    assert "tttt" not in path.read_text()
    assert "ssss" not in path.read_text()


async def test_path_may_stand_in_quotes(tmp_path: Path) -> None:
    await type_in(terminal_in(tmp_path / "p", UserMessage.of("hello")), '/export "my notes.html"')

    assert (tmp_path / "p" / "my notes.html").is_file()


async def test_export_without_a_name_finds_one(tmp_path: Path) -> None:
    await type_in(terminal_in(tmp_path / "p", UserMessage.of("hello")), "/export")

    assert [path.suffix for path in (tmp_path / "p").glob("panpan-*")] == [".md"]


async def test_existing_file_is_an_error(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", UserMessage.of("hello"))
    (tmp_path / "p" / "a.md").write_text("mine")

    with pytest.raises(ConfigError, match="exists already"):
        await type_in(terminal, "/export a.md")


async def test_empty_session_is_not_written(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/export")

    assert "nothing to export" in terminal.text
    assert list((tmp_path / "p").iterdir()) == []
