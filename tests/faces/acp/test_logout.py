"""The end of a login: stored keys are removed, and sessions that used one say so at their next prompt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capabilities.mcp.place import Place
from tests.faces.acp.editor import AgentError, Editor, editing
from tests.faces.acp.v2.draft_editor import drafting
from tests.model_server import Reply, Text, serving

KEY = "sk-ant-test-0123456789abcdef"
MODEL = "claude-sonnet-4-5"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path.resolve())
    with serving(lambda request: Reply((Text("hello"),))) as server:
        place.env["ANTHROPIC_BASE_URL"] = server.url
        yield place


def store_key(place: Place) -> Path:
    """Store a key as `panpan login` does without a keyring."""
    (place.home / "keys").mkdir(mode=0o700, exist_ok=True)
    file = place.home / "keys" / "anthropic"
    file.touch(mode=0o600)
    file.write_text(KEY)
    return file


async def code_of_prompt(editor: Editor, session: str) -> int | None:
    """Return the code of the error that a prompt gets; None for a reply."""
    try:
        await editor.prompt(session)
    except AgentError as error:
        return int(error.code)
    return None


async def test_logout_removes_the_key_and_ends_its_use(place: Place) -> None:
    file = store_key(place)
    async with editing(place, model=MODEL) as editor:
        session = await editor.new(place.root)
        before = await code_of_prompt(editor, session)
        assert await editor.request("logout") == {}
        is_there = file.exists()
        after = await code_of_prompt(editor, session)
        address = place.env.pop("ANTHROPIC_BASE_URL")  # a server of the user's own may need no key
        with pytest.raises(AgentError, match="panpan login") as refused:
            await editor.new(place.root)
        place.env["ANTHROPIC_BASE_URL"] = address
        store_key(place)
        again = await code_of_prompt(editor, session)

    assert editor.messages[0]["result"]["agentCapabilities"]["auth"] == {"logout": {}}
    assert not is_there
    assert (before, after, refused.value.code, again) == (None, -32000, -32000, None)


async def test_logout_of_version_2_is_the_same(place: Place) -> None:
    file = store_key(place)
    async with drafting(place, model=MODEL) as editor:
        session = await editor.new(place.root)
        assert await editor.request("auth/logout") == {}
        prompt = [{"type": "text", "text": "go"}]
        with pytest.raises(AgentError, match="panpan login") as refused:
            await editor.request("session/prompt", sessionId=session, prompt=prompt)

    assert not file.exists()
    assert refused.value.code == -32000


async def test_logout_leaves_a_key_of_the_environment(place: Place) -> None:
    store_key(place)
    place.env["ANTHROPIC_API_KEY"] = KEY
    async with editing(place, model=MODEL) as editor:
        session = await editor.new(place.root)
        await editor.request("logout")
        after = await code_of_prompt(editor, session)

    assert after is None
    assert place.warnings == ["ANTHROPIC_API_KEY is still set"]


async def test_logout_without_a_stored_key_is_an_error(place: Place) -> None:
    async with editing(place, "hello") as editor:
        with pytest.raises(AgentError, match="no key is stored"):
            await editor.request("logout")
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"


async def test_logout_without_a_login_changes_nothing(place: Place) -> None:
    del place.env["ANTHROPIC_BASE_URL"]
    async with editing(place, model=MODEL) as editor:
        assert await editor.request("logout") == {}
