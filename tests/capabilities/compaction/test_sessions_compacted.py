"""A session whose conversation was made shorter: live, resumed, and what is said after it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.core.conversation import Conversation
from panpan.errors import ConfigError, ContextOverflowError
from panpan.session.log.record_kinds import CompactionRecord
from panpan.session.log.records import encode_record
from panpan.types.events import Compacted, Waiting
from panpan.types.messages import (
    Compaction,
    Message,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from tests.capabilities.compaction.compacted_sessions import WORDS, session, turns, wire
from tests.capabilities.compaction.conversations import SUMMARY, conversations, talking
from tests.fakes.scripted_llm import call, say


async def test_full_window_compacts_and_warns_the_user_once(
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


async def test_resumed_session_sends_the_same_bytes(tmp_path: Path) -> None:
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


async def test_refused_request_is_compacted_once_before_the_turn_ends(tmp_path: Path) -> None:
    refusal = ContextOverflowError("too long")
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, refusal, say(SUMMARY), refusal, window=None) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        with pytest.raises(ContextOverflowError):
            await turns(one, "and now?")
        llm: Any = one.agent.model.llm

    assert len(llm.requests) == 7
    assert llm.histories[6] != llm.histories[4]


async def test_refused_request_without_removable_parts_is_not_resent(tmp_path: Path) -> None:
    async with session(tmp_path, ContextOverflowError("too long"), window=None) as one:
        with pytest.raises(ContextOverflowError):
            await turns(one, "x" * 50_000)
        llm: Any = one.agent.model.llm

    assert len(llm.requests) == 1


async def test_exact_count_decides_if_the_estimate_is_unsure(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(9)]
    async with session(tmp_path, *replies) as one:
        llm: Any = one.agent.model.llm
        llm.exact_tokens = 5_000
        events = await turns(one, *(f"question {number}" for number in range(9)))

    assert not [event for event in events if isinstance(event, Compacted)]


async def test_smaller_window_of_another_model_compacts_again(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short")) as one:
        await turns(one, *(f"question {number} " for number in range(9)))
    async with session(tmp_path, say(SUMMARY), say("shorter"), window=1_500) as smaller:
        events = await turns(smaller, "and now?")

    assert [event.compaction.trigger for event in events if isinstance(event, Compacted)] == ["auto"]


async def test_compact_refuses_a_short_session(tmp_path: Path) -> None:
    async with session(tmp_path, say("hello")) as one:
        await turns(one, "hi")
        with pytest.raises(ConfigError, match="nothing to shorten"):
            await one[CompactionCapability].compact()

    assert one.conversation.compactions == []


@pytest.mark.parametrize("damage", ["compactMetadata", "upTo", "added", "pinned", "notes", "keptFrom"])
async def test_damaged_record_sends_the_whole_conversation(damage: str) -> None:
    record = CompactionRecord.of(Compaction("auto", "u", 10, 5, added=(SystemReminder(text="a"),))).as_json()

    assert CompactionRecord.read(record) is not None
    assert CompactionRecord.read({**record, damage: 7}) is None
    assert CompactionRecord.read({**record, damage: [7]}) is None


def test_compaction_record_round_trips() -> None:
    reply = say(SUMMARY, cost_usd=0.5).model_copy(update={"usage": Usage(input_tokens=5)})
    compaction = Compaction(
        "manual",
        "u",
        10,
        5,
        ("p",),
        (SystemReminder(text="a", cause="c"),),
        "k",
        {"r": "note"},
        reply=reply,
        hint="heed",
    )

    record = CompactionRecord.read(json.loads(encode_record(CompactionRecord.of(compaction).as_json())))

    assert record is not None
    assert record.compaction == compaction


def test_compaction_of_another_conversation_changes_nothing() -> None:
    conversation = Conversation(messages=talking(0))

    conversation.compact(Compaction("auto", "elsewhere", 10, 5, kept_from="nowhere"))

    assert conversation.sent is conversation.messages
    assert conversation.compactions == []


@settings(max_examples=40, deadline=None)
@given(conversations(), st.integers(0, 100))
async def test_messages_after_a_compaction_are_sent_unchanged(messages: list[Message], cut: int) -> None:
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
