"""The greeting when a session opens."""

from pathlib import Path

import pytest

from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.turn_view import greeting
from panpan.session.opening import EarlierModel
from panpan.types.messages import UserMessage
from tests.fakes.scripted_llm import ScriptedLLM
from tests.fakes.session import session_in


@pytest.mark.parametrize("earlier", [None, EarlierModel("scripted", True), EarlierModel("big\x1b[2J", True)])
async def test_greeting_names_another_earlier_model(tmp_path: Path, earlier: EarlierModel | None) -> None:
    async with session_in(tmp_path, ScriptedLLM(), earlier_model=earlier) as session:
        session.add_message(UserMessage.of("hello"))
        rows = greeting(session, 200, Theme("plain"))

    assert any("resumed after 1 message" in row for row in rows)
    assert not any("\x1b[2J" in row for row in rows)
    is_told = any("resumed with scripted instead of big" in row for row in rows)
    assert is_told is (earlier is not None and earlier.name != "scripted")
