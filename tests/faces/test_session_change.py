"""The user's choices go on with the conversation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from panpan.errors import SessionHeldError
from panpan.faces.session_change import SessionChange
from panpan.hub.hub import Hub
from panpan.session.command import OpenSession
from tests.fakes.hub import hub_of
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in
from tests.session.test_controls import Models


async def after(tmp_path: Path, wanted: OpenSession) -> tuple[str, bool, str, bool]:
    """Choose everything in a session, go on to another one in which something was said, and return what counts."""
    work, added = tmp_path / "work", tmp_path / "added"
    work.mkdir()
    added.mkdir()

    @asynccontextmanager
    async def open_session(session_id: str | None) -> AsyncGenerator[Hub, None]:
        models = Models()
        models.add("other", ScriptedLLM())
        async with hub_of(session_in(work, ScriptedLLM(say("1")), models=models, warn=lambda text: None)) as hub:
            yield hub

    change = SessionChange(open_session, lambda text: None)
    async with open_session(None) as hub:
        before = hub.session
        async for _ in before.submit("go"):
            pass
        await before.use_model("other")
        before.use_thinking(is_on=True)
        before.set_permission_mode("plan")
        before.folders.add(added)
    async with change.to(wanted, before) as other:
        session = other.session
        assert session.conversation.messages
        roots = session.agent.context.paths.roots
        return session.model, session.thinks, session.permission_mode, added in roots


async def test_copy_of_the_conversation_keeps_the_choices(tmp_path: Path) -> None:
    assert await after(tmp_path, OpenSession("copy", keeps_choices=True)) == ("other", True, "plan", True)


async def test_other_conversation_keeps_its_own_choices(tmp_path: Path) -> None:
    assert await after(tmp_path, OpenSession("another")) == ("scripted", False, "default", False)


@pytest.mark.parametrize("is_shared", [True, False])
async def test_session_open_elsewhere_is_joined_or_warned_of(tmp_path: Path, is_shared: bool) -> None:
    warnings, opened = list[str](), list[str | None]()

    @asynccontextmanager
    async def open_session(session_id: str | None) -> AsyncGenerator[Hub, None]:
        opened.append(session_id)
        if session_id == "held":
            raise SessionHeldError("it is open in another panpan", session_id)
        async with hub_of(session_in(tmp_path, ScriptedLLM())) as hub:
            yield hub

    change = SessionChange(open_session, warnings.append, lambda session_id: is_shared and session_id == "held")
    async with open_session(None) as hub:
        before = hub.session
    with pytest.raises(SessionHeldError) if is_shared else nullcontext():
        async with change.to(OpenSession("held"), before):
            pass

    assert opened == ([None, "held"] if is_shared else [None, "held", None])
    assert warnings == ([] if is_shared else ["it is open in another panpan; the session continues unchanged"])
