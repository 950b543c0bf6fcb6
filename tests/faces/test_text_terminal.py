"""A command where nobody answers: lists are shown with numbers, and picked from by the numbers behind its name."""

from pathlib import Path

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.faces.session_commands import SessionCommands
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, terminal_in
from tests.fakes.background import FakeBackground, task


async def typed(line: str, terminal: FakeTerminal) -> str:
    return (await SessionCommands(terminal.env).run(line, terminal.session)).text


async def test_list_is_shown_with_numbers_and_nothing_changes(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    text = await typed("/effort", terminal)

    assert "    1. default (now)\n    2. low\n" in text
    assert text.endswith("/effort NUMBER picks one")
    assert terminal.session.effort is None


@pytest.mark.parametrize("picked", ["2", "low", "LOW"])
async def test_number_or_name_picks(tmp_path: Path, picked: str) -> None:
    terminal = terminal_in(tmp_path / "p")

    await typed(f"/effort {picked}", terminal)

    assert terminal.session.effort == "low"


@pytest.mark.parametrize("picked", ["0", "99"])
async def test_unknown_number_picks_nothing_and_shows_the_list(tmp_path: Path, picked: str) -> None:
    terminal = terminal_in(tmp_path / "p")

    text = await typed(f"/effort {picked}", terminal)

    assert text.startswith(f"there is no number {picked} in this list:\n")
    assert "  2. low\n" in text
    assert terminal.session.effort is None


async def test_number_is_a_name_without_a_list(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")

    await typed("/rename 2", terminal)

    assert terminal.session.title == "2"


async def test_background_task_is_stopped_by_two_numbers(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    tasks = FakeBackground(task("aaaa0001", "npm run dev"), task("aaaa0002", "pytest -x"))
    terminal.session[BackgroundTasks] = tasks

    text = await typed("/tasks 2 3", terminal)

    assert [one.title for one in tasks.running] == ["npm run dev"]
    assert text.startswith("Background task aaaa0002 was stopped: pytest -x")


async def test_end_of_a_long_text_is_shown(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p")
    tasks = FakeBackground(task("aaaa0001", state="finished"))
    tasks.outputs = {"aaaa0001": "".join(f"line {number}\n" for number in range(500))}
    terminal.session[BackgroundTasks] = tasks

    rows = (await typed("/tasks aaaa0001", terminal)).splitlines()

    assert rows[0] == "… 403 more lines above"
    assert rows[-2:] == ["line 498", "line 499"]
