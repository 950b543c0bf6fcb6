"""Slash commands without a terminal: which texts are meant as one, and what those do that need a screen."""

import string
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from panpan.app import slash_commands
from panpan.errors import ConfigError
from panpan.faces.session_commands import SessionCommands
from panpan.faces.terminal.commands.registry import all_commands
from tests.faces.terminal.commands.command_fixtures import terminal_in
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in

WORD = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=12)
COMMANDS = SessionCommands({})
NEED_TERMINAL = [command.name for command in all_commands(slash_commands()) if command.needs_terminal]


def session_at(root: Path) -> Any:
    return terminal_in(root / "p").session


@given(WORD)
def test_slash_and_one_word_is_a_command_and_never_a_prompt(word: str) -> None:
    assert COMMANDS.line_in(f"/{word}") == f"/{word}"
    assert COMMANDS.line_in(f" /{word}\n") == f"/{word}"


@given(WORD, WORD, st.text(max_size=30))
def test_text_that_begins_with_a_path_is_a_prompt(first: str, second: str, rest: str) -> None:
    assert COMMANDS.line_in(f"/{first}/{second} {rest}") is None


@given(st.text(max_size=30))
def test_text_without_a_slash_before_it_is_a_prompt(text: str) -> None:
    assume(not text.lstrip().startswith("/"))

    assert COMMANDS.line_in(text) is None


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("/review be kind", True),
        ("/reviw be kind", True),
        ("/usage", True),
        ("/tmp is full", False),
        ("/usr has no space", False),
        ("/ is full", False),
        ("/", False),
        ("/s or not, I mean it", False),
        ("help", False),
        ("exit", False),
    ],
)
def test_first_word_tells_a_command_from_a_prompt(text: str, is_command: bool) -> None:
    assert (COMMANDS.line_in(text) is not None) is is_command


@pytest.mark.parametrize("name", NEED_TERMINAL)
async def test_command_that_needs_a_terminal_is_an_error(tmp_path: Path, name: str) -> None:
    assert name not in COMMANDS.names

    with pytest.raises(ConfigError, match=f"^/{name} needs a terminal"):
        await COMMANDS.run(f"/{name} x", session_at(tmp_path))


async def test_unknown_command_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no command /reviw; did you mean /review"):
        await COMMANDS.run("/reviw", session_at(tmp_path))


async def test_wrong_argument_is_an_error(tmp_path: Path) -> None:
    for line in ("/effort huge", "/permissions free", "/todos all"):
        with pytest.raises(ConfigError):
            await COMMANDS.run(line, session_at(tmp_path))


async def test_compact_with_nothing_to_shorten_is_no_error(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("hello"))) as session:
        nothing_said = await COMMANDS.run("/compact", session)
        async with aclosing(session.submit("hi")) as events:
            async for _ in events:
                pass
        little_said = await COMMANDS.run("/compact", session)

    assert nothing_said.text.endswith("there is nothing to shorten: all messages are short or recent")
    assert nothing_said == little_said


async def test_list_is_shown_with_the_way_to_pick_from_it(tmp_path: Path) -> None:
    session = session_at(tmp_path)

    listed = await COMMANDS.run("/effort", session)
    await COMMANDS.run("/effort 2", session)

    assert listed.text.endswith("/effort NUMBER picks one")
    assert session.effort == "low"


async def test_prompt_command_returns_its_prompt(tmp_path: Path) -> None:
    result = await COMMANDS.run("/review be kind", session_at(tmp_path))

    assert result.text == ""
    assert len(result.prompts) == 1
    assert result.prompts[0].text.endswith("ARGUMENTS: be kind\n</skill>")


async def test_help_lists_what_runs_here(tmp_path: Path) -> None:
    shown = (await COMMANDS.run("/help", session_at(tmp_path))).text

    assert all(f"/{name}" in shown for name in COMMANDS.names)
    assert "/theme" not in shown


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("plan", "/plan"),
        ("plan", "/permissions default"),
        ("plan", "/permissions bypassPermissions"),
        ("dontAsk", "/permissions default"),
        ("default", "/permissions ACCEPTEDITS"),
        ("default", "/permissions bypassPermissions"),
    ],
)
async def test_text_without_a_terminal_never_loosens_the_mode(tmp_path: Path, before: Any, line: str) -> None:
    session = session_at(tmp_path)
    session.set_permission_mode(before)

    with pytest.raises(ConfigError, match=f"the mode stays {before}.*--permission-mode"):
        await COMMANDS.run(line, session)

    assert session.permission_mode == before


async def test_text_without_a_terminal_may_tighten_the_mode(tmp_path: Path) -> None:
    session = session_at(tmp_path)
    session.set_permission_mode("default")

    await COMMANDS.run("/permissions plan", session)

    assert session.permission_mode == "plan"
    assert "add-dir" not in COMMANDS.names
