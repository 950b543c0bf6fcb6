from pathlib import Path

import pytest

from panpan.capabilities.todos.todos import Todos
from panpan.errors import ConfigError
from panpan.types.content import ChecklistItem
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, terminal_in, type_in


@pytest.fixture
def terminal(tmp_path: Path) -> FakeTerminal:
    made = terminal_in(tmp_path / "p")
    made.session[Todos].todos = (
        ChecklistItem(id="1", content="Read", active_form="Reading", status="completed"),
        ChecklistItem(
            id="2", content="Run\x1b[2J the tests", active_form="Running \x1b[2Jthe tests", status="in_progress"
        ),
        ChecklistItem(id="3", content="Write " + "very " * 40 + "much", active_form="Writing"),
    )
    return made


async def test_todos_command_shows_the_whole_list_within_the_width(terminal: FakeTerminal) -> None:
    await type_in(terminal, "/todos")

    assert terminal.text.split("\n")[:3] == ["1 of 3 done:", "  ☑ Read", "  ◐ Running the tests"]
    assert terminal.text.count("very") == 40
    assert terminal.widest <= terminal.width


async def test_todos_command_clears_the_list(terminal: FakeTerminal) -> None:
    await type_in(terminal, "/todos clear")

    assert terminal.session[Todos].todos == ()
    assert "the model is told" in terminal.text


async def test_todos_command_says_that_there_is_none(tmp_path: Path) -> None:
    assert "no todos" in (await type_in(terminal_in(tmp_path / "p"), "/todos")).text


async def test_todos_command_refuses_other_words(terminal: FakeTerminal) -> None:
    with pytest.raises(ConfigError, match="/todos clear empties it; delete is neither"):
        await type_in(terminal, "/todos delete")

    assert len(terminal.session[Todos].todos) == 3
