"""`/btw`: the model sees the conversation, nothing of it stays there, and what it costs counts."""

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.capabilities.side_questions.capability import said_so_far
from panpan.core.conversation import Conversation
from panpan.session.session import Session
from panpan.types.content import ToolUseBlock
from panpan.types.events import CommandRan
from panpan.types.messages import AssistantMessage, UserMessage
from tests.model_server import ModelServer, ToolCall, calls, say, serving


class Place:
    """A workspace, and a model server that its sessions ask."""

    def __init__(self, root: Path, server: ModelServer) -> None:
        (root / "workspace").mkdir()
        self.workspace = root / "workspace"
        self.server = server
        self.env = {
            "HOME": str(root), "PANPAN_HOME": str(root / "home"), "NO_PROXY": "*", "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_BASE_URL": server.url,
        }  # fmt: skip

    def open(self, **options: Any) -> Any:
        return open_session(self.workspace, env=self.env, **options)

    @property
    def sent(self) -> list[Any]:
        return [request.body for request in self.server.requests]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with serving([say("The seed is 7."), say("It is 7."), say("done")]) as server:
        yield Place(tmp_path, server)


async def said(session: Session, prompt: str) -> str:
    """Submit a prompt, and return what a command showed."""
    async with aclosing(session.submit(prompt)) as events:
        return "".join([event.text async for event in events if isinstance(event, CommandRan)])


async def test_answer_is_shown_and_neither_it_nor_the_question_is_kept(place: Place) -> None:
    async with place.open() as session:
        await said(session, "remember the seed")
        before = list(session.conversation.messages)
        shown = await said(session, "/btw which seed?")
        assert session.conversation.messages == before
        await said(session, "go on")

    assert shown.startswith("btw: It is 7.\nbeside the conversation · $0.")
    _, aside, after = place.sent
    assert "which seed?" in str(aside["messages"][-1])
    assert "which seed?" not in str(after)
    assert "It is 7." not in str(after)


async def test_request_begins_as_the_conversation_does(place: Place) -> None:
    async with place.open() as session:
        await said(session, "remember the seed")
        await said(session, "/btw which seed?")
        await said(session, "go on")

    _, aside, after = place.sent
    assert (aside["tools"], aside["system"]) == (after["tools"], after["system"])
    assert [one["role"] for one in aside["messages"]] == [one["role"] for one in after["messages"]]
    assert aside["messages"][:-1] == after["messages"][:-1]


async def test_cost_counts_also_in_a_resumed_session(place: Place) -> None:
    async with place.open() as session:
        await said(session, "remember the seed")
        one = session.budget.spent.usd
        await said(session, "/btw which seed?")
        both, session_id = session.budget.spent.usd, session.info.id
    async with place.open(resume=session_id) as session:
        assert session.budget.spent.usd == both > one > 0


async def test_call_of_a_tool_is_not_run(tmp_path: Path) -> None:
    with serving([calls(ToolCall("Write", {"file_path": "a.txt", "content": "x"}))]) as server:
        place = Place(tmp_path, server)
        async with place.open() as session:
            shown = await said(session, "/btw write a file")

    assert "ask in other words" in shown
    assert not (place.workspace / "a.txt").exists()
    assert len(place.sent) == 1


def test_so_far_has_no_reply_whose_calls_still_run() -> None:
    first, answer = UserMessage.of("go"), AssistantMessage(content=(), model="m")
    use = ToolUseBlock(id="1", name="Bash", input={})
    conversation = Conversation("system", messages=[first, answer, UserMessage.of("on")])
    whole = tuple(conversation.messages)
    assert said_so_far(conversation) == whole

    conversation.append(AssistantMessage(content=(use,), model="m"))
    assert said_so_far(conversation) == whole
