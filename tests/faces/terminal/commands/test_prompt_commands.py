from pathlib import Path

import pytest

from panpan.faces.terminal.rendering.messages import user_message_lines
from panpan.faces.terminal.screen.theme import Theme
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


@pytest.mark.parametrize(("name", "word"), [("init", "AGENTS.md"), ("review", "git diff"), ("commit", "git add -A")])
async def test_model_gets_our_prompt_and_what_the_user_adds(tmp_path: Path, name: str, word: str) -> None:
    terminal = terminal_in(tmp_path / "p")

    await type_in(terminal, f"/{name}")
    await type_in(terminal, f"/{name} mind the tests")

    plain, wished = terminal.submitted
    assert word in plain.text
    assert wished.text.endswith("ARGUMENTS: mind the tests\n</skill>")
    assert [plain.typed, wished.typed] == [f"/{name}", f"/{name} mind the tests"]
    assert user_message_lines(wished, 80, Theme("plain", has_sequences=False)) == [f"❯ /{name} mind the tests"]
