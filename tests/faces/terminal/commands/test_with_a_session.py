from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.session.session import Session
from tests.faces.terminal.commands.command_fixtures import FakeSession, FakeTerminal, type_in
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in


def test_fake_session_promises_nothing_that_the_real_one_lacks(tmp_path: Path) -> None:
    fake, real = FakeSession(tmp_path), session_in(tmp_path, ScriptedLLM())

    missing = [name for name in dir(fake) if not name.startswith("_") and not hasattr(real, name)]
    assert missing == []


async def in_session(session: Session, *lines: str) -> FakeTerminal:
    """Say hello in a session, then type commands into it."""
    terminal = FakeTerminal(session, {"PANPAN_HOME": str(session.info.cwd.parent / "home")}, width=200)
    async with session:
        async for _ in session.submit("hello"):
            pass
        for line in lines:
            await type_in(terminal, line)
    return terminal


async def test_commands_show_the_real_session(tmp_path: Path) -> None:
    root = tmp_path / "p"
    root.mkdir()

    terminal = await in_session(
        session_in(root, ScriptedLLM(say("hello yourself", cost_usd=0.25))),
        *("/rename Greetings", "/plan", "/status", "/cost", "/context", "/permissions", "/export a.md"),
    )

    for said in ("s1 Greetings", "permission mode: plan", "Mode: plan", "$0.2500", "Replies"):
        assert said in terminal.text
    assert (root / "a.md").read_text().startswith("# Greetings\n")
    assert "> hello yourself" in (root / "a.md").read_text()


async def test_folder_that_is_added_is_one_that_tools_may_work_in(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "data").mkdir()
    session = session_in(tmp_path / "p", ScriptedLLM(say("hello")))

    await in_session(session, "/add-dir ../data")

    assert session.agent.context.paths.locate(str(tmp_path / "data")).is_inside


async def test_model_that_cannot_be_changed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()

    with pytest.raises(ConfigError, match="cannot be changed"):
        await in_session(session_in(tmp_path / "p", ScriptedLLM(say("hello"))), "/model opus")
