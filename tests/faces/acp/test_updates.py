"""Events of a session as updates: no text twice, none lost, and an end for each call."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from panpan.faces.acp.updates import SessionUpdates, Update
from panpan.hub.events import HubEvent, OpenBlock, Resync, TurnBegan, TurnClosed
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ToolProgress,
    ToolStarted,
)
from panpan.types.messages import AssistantMessage, UserMessage
from tests.capabilities.mcp.place import Place

USE = ToolUseBlock(id="call_1", name="Bash", input={"command": "make", "description": "Build"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


class Told:
    """Updates, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.updates: SessionUpdates

    async def of(self, *events: HubEvent) -> Sequence[Update]:
        return [update for event in events for update in await self.updates.of(event)]

    async def texts(self, *events: HubEvent) -> Sequence[tuple[str, str]]:
        """Return the texts, each with the number of its message."""
        found = await self.of(*events)
        ids = list(dict.fromkeys(one.message_id for one in found))  # type: ignore[union-attr]
        return [(one.content.text, str(ids.index(one.message_id))) for one in found]  # type: ignore[union-attr]


@asynccontextmanager
async def telling(place: Place) -> AsyncGenerator[Told, None]:
    told = Told()
    async with place.opening() as session:
        told.updates = SessionUpdates(session, "acp", lambda: told.now)
        yield told


def failed() -> RetryScheduled:
    return RetryScheduled(2, "overloaded", 0.1)


async def test_reply_that_starts_again_is_not_shown_twice(place: Place) -> None:
    async with telling(place) as told:
        texts = await told.texts(
            ReplyStarted("", "m"), BlockStarted(0, "text"), TextDelta(0, "one two"), failed(),
            ReplyStarted("", "m"), BlockStarted(0, "text"), TextDelta(0, "one "), TextDelta(0, "two three"),
        )  # fmt: skip

    assert texts == [("one two", "0"), (" three", "0")]


async def test_reply_that_becomes_another_one_is_a_new_message(place: Place) -> None:
    async with telling(place) as told:
        texts = await told.texts(
            ReplyStarted("", "m"), BlockStarted(0, "text"), TextDelta(0, "one two"), failed(),
            ReplyStarted("", "m"), BlockStarted(0, "text"), TextDelta(0, "one 2"),
        )  # fmt: skip

    assert texts == [("one two", "0"), ("one 2", "1")]


async def test_text_that_was_left_out_for_a_slow_editor_comes_later(place: Place) -> None:
    async with telling(place) as told:
        texts = await told.texts(
            ReplyStarted("", "m"),
            BlockStarted(0, "text"),
            TextDelta(0, "one"),
            Resync([OpenBlock(0, "text", "one two")]),
            BlockFinished(0, TextBlock(text="one two three")),
        )

    assert [text for text, _ in texts] == ["one", " two", " three"]


async def test_output_is_told_now_and_then_and_whole(place: Place) -> None:
    async with telling(place) as told:
        (begun,) = await told.of(BlockFinished(0, USE))
        assert await told.of(AssistantMessage(content=(USE,))) == []
        first = await told.of(ToolProgress("call_1", "one\n"))
        told.now = 0.1
        second = await told.of(ToolProgress("call_1", "two\n"))
        told.now = 0.3
        third = await told.of(ToolProgress("call_1", "three\n"))

    assert begun.tool_call_id == "call_1"  # type: ignore[union-attr]
    assert (begun.title, begun.kind) == ("Bash make", "execute")  # type: ignore[union-attr]
    assert len(first) == 1
    assert second == []
    assert third[0].content[0].content.text == "```\none\ntwo\nthree\n```"  # type: ignore[union-attr,index]


async def test_output_that_came_too_early_is_told_later(place: Place) -> None:
    async with telling(place) as told:
        await told.of(BlockFinished(0, USE), ToolProgress("call_1", "one\n"))
        assert not told.updates.has_untold
        await told.of(ToolProgress("call_1", "two\n"))
        assert told.updates.has_untold
        early = told.updates.untold()
        told.now = 0.3
        (late,) = told.updates.untold()

    assert early == []
    assert late.content[0].content.text == "```\none\ntwo\n```"  # type: ignore[union-attr,index]
    assert not told.updates.has_untold


async def test_subagent_is_told_in_the_entry_of_its_call(place: Place) -> None:
    async with telling(place) as told:
        await told.of(BlockFinished(0, USE))
        lines = await told.of(SubagentEvent("call_1", "a", ToolStarted("x", "Read", "a.py")))

    assert lines[0].content[0].content.text == "```\n● Read a.py\n```"  # type: ignore[union-attr,index]


async def test_turn_that_closes_ends_its_calls(place: Place) -> None:
    async with telling(place) as told:
        await told.of(BlockFinished(0, USE))
        (ended,) = await told.of(TurnClosed())

        assert (ended.tool_call_id, ended.status) == ("call_1", "failed")  # type: ignore[union-attr]
        assert await told.of(TurnClosed()) == []


async def test_prompt_of_another_client_is_shown(place: Place) -> None:
    async with telling(place) as told:
        own = await told.of(TurnBegan(UserMessage.of("mine"), "acp"))
        other = await told.texts(TurnBegan(UserMessage.of("theirs"), "terminal"))

    assert own == []
    assert other == [("theirs", "0")]


async def test_call_that_cannot_be_made_is_shown(place: Place) -> None:
    uses = [
        ToolUseBlock(id="1", name="NoSuchTool", input={"words": "a b"}),
        ToolUseBlock(id="2", name="Bash", input={}),
        ToolUseBlock(id="3", name="Bash", input={}, input_error="no JSON"),
    ]
    async with telling(place) as told:
        begun = await told.of(*(BlockFinished(index, use) for index, use in enumerate(uses)))

    assert [one.title for one in begun] == ["NoSuchTool a b", "Bash", "Bash"]  # type: ignore[union-attr]
    assert {one.kind for one in begun} == {"other"}  # type: ignore[union-attr]
