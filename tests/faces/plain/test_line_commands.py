"""Slash commands where there are only lines: what they print, how one picks from a list, and what comes of it."""

from pathlib import Path

import pytest

from panpan.app import slash_commands
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.errors import ConfigError
from panpan.faces.plain.line_commands import LineCommands, LineTerminal, line_commands
from panpan.faces.terminal.commands.registry import all_commands
from panpan.session.command import OpenSession
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Message, UserMessage
from tests.faces.memory import Memory
from tests.faces.terminal.commands.command_fixtures import terminal_in
from tests.fakes.background import FakeBackground, task


class Lines:
    """A session of fakes, and what commands printed on its lines."""

    def __init__(self, root: Path, *messages: Message, has_colour: bool = False) -> None:
        fake = terminal_in(root / "p", *messages)
        self.session = fake.session
        self.out = Memory()
        self.commands = LineCommands(self.out, fake.env, has_colour=has_colour)

    async def type(self, line: str) -> LineTerminal:
        return await self.commands.run(line, self.session)


def test_there_are_the_commands_of_the_screen() -> None:
    assert [command.name for command in line_commands()] == [command.name for command in all_commands(slash_commands())]


async def test_a_list_is_printed_with_numbers_and_nothing_changes(tmp_path: Path) -> None:
    lines = Lines(tmp_path)

    await lines.type("/effort")

    assert "  1. default (now)\n  2. low\n" in lines.out.text
    assert lines.out.text.endswith("/effort NUMBER picks one\n")
    assert lines.session.effort is None


@pytest.mark.parametrize("picked", ["2", "low", "LOW"])
async def test_one_picks_by_number_or_name(tmp_path: Path, picked: str) -> None:
    lines = Lines(tmp_path)

    await lines.type(f"/effort {picked}")

    assert lines.session.effort == "low"


@pytest.mark.parametrize("picked", ["0", "99"])
async def test_a_number_that_is_not_in_the_list_picks_nothing_and_shows_it(tmp_path: Path, picked: str) -> None:
    lines = Lines(tmp_path)

    await lines.type(f"/effort {picked}")

    assert lines.out.text.startswith(f"there is no number {picked} in this list:\n")
    assert "  2. low\n" in lines.out.text
    assert lines.session.effort is None


async def test_a_number_is_a_name_where_there_is_no_list(tmp_path: Path) -> None:
    lines = Lines(tmp_path)

    await lines.type("/rename 2")

    assert lines.session.title == "2"


async def test_what_comes_after_the_session_is_returned(tmp_path: Path) -> None:
    lines = Lines(tmp_path, UserMessage.of("hello"))

    terminal = await lines.type("/clear")

    assert terminal.then == OpenSession()
    assert "panpan -r s1" in terminal.then.said  # shown when he has decided what becomes of what runs
    assert lines.out.text == ""


async def test_what_the_model_is_asked_is_returned(tmp_path: Path) -> None:
    terminal = await Lines(tmp_path).type("/review the tests")

    (prompt,) = terminal.prompts
    assert prompt.text.endswith("The user adds: the tests")


@pytest.mark.parametrize("line", ["/theme", "/theme dark", "/vim", "/statusline"])
async def test_what_is_about_the_screen_says_that_there_is_none(tmp_path: Path, line: str) -> None:
    lines = Lines(tmp_path)

    await lines.type(line)

    assert "panpan prints lines only" in lines.out.text


async def test_a_command_that_there_is_not_is_an_error_with_the_nearest_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean /status"):
        await Lines(tmp_path).type("/statsu")


@pytest.mark.parametrize("line", ["/help", "/h", "/status", "/permissions", "/context"])
async def test_without_colour_no_sequence_is_printed(tmp_path: Path, line: str) -> None:
    lines = Lines(tmp_path)

    await lines.type(line)

    assert lines.out.text
    assert "\x1b" not in lines.out.text


async def test_what_the_user_took_to_answer_is_told_apart(tmp_path: Path) -> None:
    answer = AssistantMessage(content=(TextBlock(text="yes"),), model="scripted")
    lines = Lines(tmp_path, UserMessage.of("hello"), answer)

    await lines.commands.run("/cost", lines.session, waited_s=60.0)

    assert "(and 1 min 0 s for your" in lines.out.text


async def test_a_background_task_is_stopped_by_two_numbers(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    lines.session[BackgroundTasks] = FakeBackground(task("aaaa0001", "npm run dev"), task("aaaa0002", "pytest -x"))

    await lines.type("/tasks 2 3")

    assert [one.title for one in lines.session[BackgroundTasks].running] == ["npm run dev"]
    assert lines.out.text.startswith("Background task aaaa0002 was stopped: pytest -x")


async def test_of_a_long_text_the_end_is_printed(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    lines.session[BackgroundTasks] = FakeBackground(task("aaaa0001", state="finished"))
    lines.session[BackgroundTasks].outputs = {"aaaa0001": "".join(f"line {number}\n" for number in range(500))}

    await lines.type("/tasks aaaa0001")

    assert lines.out.text.splitlines()[0] == "… 403 more lines above"
    assert lines.out.text.endswith("line 498\nline 499\n")
