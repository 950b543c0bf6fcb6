"""A session whose conversation was made shorter: live, resumed, taken back, rewound."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.config.settings import CompactionSettings, Settings
from panpan.core.conversation import Conversation
from panpan.errors import ConfigError, ContextOverflowError
from panpan.llm.providers import anthropic_request
from panpan.services.budget import Budget
from panpan.services.compaction.compactor import Compactor
from panpan.services.compaction.make_room import MakeRoom
from panpan.services.sessions.compaction_record import compaction_of, compaction_record
from panpan.services.sessions.records import encoded
from panpan.services.sessions.session import Session
from panpan.types.compaction import Compaction
from panpan.types.events import Compacted, Event, Waiting
from panpan.types.messages import Message, SystemReminder, ToolResultMessage, Usage, UserMessage
from tests.fakes.scripted_llm import Reply, ScriptedLLM, call, say
from tests.fakes.session import session_in
from tests.fakes.tools import looking
from tests.services.compaction.conversations import SUMMARY, conversations, talking

WORDS = "w" * 4_000
SETTINGS = CompactionSettings(window_tokens=10_000)


def session(root: Path, *replies: Reply, window: int | None = 10_000, warnings: list[str] | None = None) -> Session:
    warn = warnings.append if warnings is not None else lambda _: None
    hook = MakeRoom(Compactor(), SETTINGS, window, warn)
    return session_in(root, ScriptedLLM(*replies), looking(), hooks=[hook], settings=Settings(compaction=SETTINGS))


async def turns(session: Session, *prompts: str) -> list[Event]:
    return [event for prompt in prompts async for event in session.submit(prompt)]


def wire(messages: list[Message]) -> list[bytes | None]:
    """The messages as they are sent."""
    return [
        anthropic_request.encode_reply(message, model="scripted")
        if message.type == "assistant"
        else anthropic_request.encode_user_side([message])
        for message in messages
    ]


async def test_before_the_window_is_full_the_conversation_becomes_shorter_and_the_user_is_told_once(
    tmp_path: Path,
) -> None:
    warnings: list[str] = []
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), warnings=warnings) as one:
        events = await turns(one, *(f"question {number} " for number in range(9)))

    compactions = [event.compaction for event in events if isinstance(event, Compacted)]
    assert [compaction.trigger for compaction in compactions] == ["auto"]
    assert any(isinstance(event, Waiting) for event in events)
    assert len(warnings) == 1
    assert "/compact" in warnings[0]
    assert len(one.conversation.messages) == 18
    assert len(one.conversation.sent) < 10


async def test_a_resumed_session_sends_the_same_bytes(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    async with session(tmp_path, *replies, say(SUMMARY), call(("1", "Look", {})), say("short"), say("more")) as live:
        await turns(live, *(f"question {number} " for number in range(10)))
    async with session(tmp_path) as resumed:
        pass

    assert live.conversation.sent is not live.conversation.messages
    assert wire(resumed.conversation.sent) == wire(live.conversation.sent)
    assert resumed.conversation.messages == live.conversation.messages
    assert resumed.conversation.measured_messages == live.conversation.measured_messages
    assert resumed.conversation.measured_tokens == live.conversation.measured_tokens


async def test_a_refused_request_is_made_shorter_once_and_a_second_refusal_ends_the_turn(tmp_path: Path) -> None:
    refusal = ContextOverflowError("too long")
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, refusal, say(SUMMARY), refusal, window=None) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        with pytest.raises(ContextOverflowError):
            await turns(one, "and now?")
        llm: Any = one.parts.model.llm

    assert len(llm.requests) == 7
    assert llm.histories[6] != llm.histories[4]


async def test_where_nothing_can_leave_a_refused_request_is_not_sent_again(tmp_path: Path) -> None:
    async with session(tmp_path, ContextOverflowError("too long"), window=None) as one:
        with pytest.raises(ContextOverflowError):
            await turns(one, "x" * 50_000)
        llm: Any = one.parts.model.llm

    assert len(llm.requests) == 1


async def test_an_exact_count_of_the_provider_decides_where_the_estimate_is_not_sure(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(9)]
    async with session(tmp_path, *replies) as one:
        llm: Any = one.parts.model.llm
        llm.exact_tokens = 5_000
        events = await turns(one, *(f"question {number}" for number in range(9)))

    assert not [event for event in events if isinstance(event, Compacted)]


async def test_what_the_user_has_taken_back_is_not_made_shorter_at_once(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), say("whole"), say(WORDS), say("x")) as one:
        await turns(one, *(f"question {number} " for number in range(9)))
        one.undo_compaction()
        events = await turns(one, "and now?")

    assert not [event for event in events if isinstance(event, Compacted)]
    assert one.conversation.sent is one.conversation.messages


async def test_for_a_model_with_a_smaller_window_it_is_made_shorter_anew(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short")) as one:
        await turns(one, *(f"question {number} " for number in range(9)))
    async with session(tmp_path, say(SUMMARY), say("shorter"), window=1_500) as smaller:
        events = await turns(smaller, "and now?")

    assert [event.compaction.trigger for event in events if isinstance(event, Compacted)] == ["auto"]


async def test_compact_and_undo(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), say("long")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        compaction = await one.compact("heed the colour")
        await turns(one, "now?")
        undo = one.undo_compaction()
        await turns(one, "and now?")
        llm: Any = one.parts.model.llm
        with pytest.raises(ConfigError, match="no compaction"):
            one.undo_compaction()

    assert compaction is not None
    assert undo.trigger == "undo"
    assert "heed the colour" in llm.histories[4][0].text
    assert len(llm.histories[5]) < len(llm.histories[6])
    assert llm.histories[6] == one.conversation.messages[:-1]
    async with session(tmp_path) as resumed:
        assert resumed.conversation.sent == resumed.conversation.messages == one.conversation.messages


async def test_undo_goes_back_one_compaction_at_a_time(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(6)]
    async with session(tmp_path, *replies[:4], say(SUMMARY), *replies[4:], say(SUMMARY)) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one.compact()
        first = list(one.conversation.sent)
        await turns(one, "question 4", "question 5")
        await one.compact()
        one.undo_compaction()
        again = list(one.conversation.sent)
        one.undo_compaction()

        assert again[: len(first)] == first
        assert one.conversation.sent == one.conversation.messages


async def test_a_rewind_to_before_a_compaction_sends_what_was_sent_then(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one.compact()
        await turns(one, "now?")
        prompts = [message for message in one.conversation.messages if isinstance(message, UserMessage)]
        await one.rewind(prompts[-1].uuid)
        assert one.conversation.sent is not one.conversation.messages
        await one.rewind(prompts[-2].uuid)
        assert one.conversation.sent == one.conversation.messages
        assert len(one.conversation.messages) == 6


async def test_what_a_summary_cost_counts_for_the_budget_also_when_the_session_goes_on(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}", cost_usd=0.01) for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY, cost_usd=1.0)) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one.compact()
    async with session_in(tmp_path, ScriptedLLM(), hooks=[Budget(0.5)]) as resumed:
        with pytest.raises(Exception, match="is spent"):
            await turns(resumed, "go on")


async def test_there_is_nothing_to_compact_in_a_short_session(tmp_path: Path) -> None:
    async with session(tmp_path, say("hello")) as one:
        await turns(one, "hi")
        with pytest.raises(ConfigError, match="nothing to make shorter"):
            await one.compact()

    assert one.conversation.compactions == []


@pytest.mark.parametrize("damage", ["compactMetadata", "upTo", "added", "pinned", "notes", "keptFrom"])
async def test_a_damaged_record_sends_the_whole_conversation(damage: str) -> None:
    record = compaction_record(Compaction("auto", "u", 10, 5, added=(SystemReminder(text="a"),)))

    assert compaction_of(record) is not None
    assert compaction_of({**record, damage: 7}) is None
    assert compaction_of({**record, damage: [7]}) is None


def test_a_record_says_all_of_a_compaction() -> None:
    reply = say(SUMMARY, cost_usd=0.5).model_copy(update={"usage": Usage(input_tokens=5)})
    compaction = Compaction(
        "manual", "u", 10, 5, ("p",), (SystemReminder(text="a", cause="c"),), "k", {"r": "note"}, reply=reply
    )

    assert compaction_of(json.loads(encoded(compaction_record(compaction)))) == compaction


def test_a_compaction_of_another_conversation_changes_nothing() -> None:
    conversation = Conversation(messages=talking(0))

    conversation.compact(Compaction("auto", "elsewhere", 10, 5, kept_from="nowhere"))

    assert conversation.sent is conversation.messages
    assert conversation.compactions == []


@settings(max_examples=40, deadline=None)
@given(conversations(), st.integers(0, 100))
async def test_what_is_said_after_a_compaction_is_sent_as_it_is(messages: list[Message], cut: int) -> None:
    starts = [index for index, message in enumerate(messages) if not isinstance(message, ToolResultMessage)]
    kept = messages[starts[cut % len(starts)]]
    last = next(message for message in reversed(messages) if not isinstance(message, ToolResultMessage))
    conversation = Conversation(messages=messages)
    conversation.compact(Compaction("auto", last.uuid, 10, 5, kept_from=kept.uuid, added=(SystemReminder(text="s"),)))
    later = [UserMessage.of("more"), say("and more")]
    for message in later:
        conversation.append(message)
    folded = Conversation(messages=[*messages, *later], compactions=conversation.compactions)

    assert conversation.sent[-2:] == later
    assert folded.sent == conversation.sent
    assert folded.measured_messages == conversation.measured_messages == len(conversation.sent) - 2
