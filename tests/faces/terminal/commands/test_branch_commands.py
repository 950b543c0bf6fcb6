"""Back to an earlier message, and on in a copy."""

from pathlib import Path

import pytest

from panpan.config.locations import Locations
from panpan.session.command import OpenSession
from panpan.session.log.fold import fold_records
from panpan.session.log.session_log import read_records
from panpan.session.session import Session
from panpan.types.messages import UserMessage
from tests.faces.terminal.commands.command_fixtures import FakeTerminal, type_in
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "p").mkdir()
    return session_in(tmp_path / "p", ScriptedLLM(say("1"), say("2"), say("3")))


def terminal_of(session: Session, picks: int | None = None) -> FakeTerminal:
    env = {"PANPAN_HOME": str(session.info.cwd.parent / "home")}
    return FakeTerminal(session, env, picks=picks, width=200)


async def say_all(session: Session, *prompts: str) -> None:
    for prompt in prompts:
        async for _ in session.submit(prompt):
            pass


def said(session: Session) -> list[str]:
    return [message.text for message in session.conversation.messages if isinstance(message, UserMessage)]


async def test_rewind_offers_the_newest_first_and_hands_the_text_back(session: Session) -> None:
    terminal = terminal_of(session, picks=1)
    async with session:
        await say_all(session, "one", "two\nand more", "three")
        await type_in(terminal, "/rewind")

        assert [option.label for option in terminal.options] == ["three", "two", "one"]
        assert said(session) == ["one"]
    assert terminal.handed_back == ["two\nand more"]
    assert "“two” and 1 further" in terminal.text


async def test_branch_picker_without_a_choice_stays_here(session: Session) -> None:
    terminal = terminal_of(session)
    async with session:
        await type_in(terminal, "/rewind")
        assert "nothing has been said" in terminal.text
        await say_all(session, "one")
        await type_in(terminal, "/rewind")

        assert (said(session), terminal.handed_back) == (["one"], [])


async def test_fork_goes_on_in_a_session_that_says_the_same(session: Session) -> None:
    terminal = terminal_of(session)
    async with session:
        await say_all(session, "one")
        await type_in(terminal, "/fork")
        messages = list(session.conversation.messages)

    assert isinstance(terminal.then, OpenSession)
    assert f"panpan -r {session.info.id}" in terminal.then.message
    folder = Locations.find(session.info.cwd, terminal.env).sessions_folder
    assert fold_records(read_records(folder / f"{terminal.then.resume}.jsonl")).messages == messages


async def test_session_in_which_nothing_was_said_is_not_copied(session: Session) -> None:
    terminal = terminal_of(session)
    async with session:
        await type_in(terminal, "/fork")

    assert (terminal.then, "nothing has been said" in terminal.text) == (None, True)
