"""A session whose conversation was made shorter: live, resumed, taken back, rewound."""

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.config.settings import CompactionSettings, Settings
from panpan.core.conversation import Conversation
from panpan.errors import BudgetError, ConfigError, ContextOverflowError
from panpan.llm.providers import anthropic_request
from panpan.services.budget import Budget
from panpan.services.compaction.compactor import Compactor
from panpan.services.compaction.make_room import MakeRoom
from panpan.services.sessions.compaction_record import compaction_of, compaction_record
from panpan.services.sessions.fold import folded
from panpan.services.sessions.forking import fork
from panpan.services.sessions.log import read_records
from panpan.services.sessions.records import encoded
from panpan.services.sessions.session import Session
from panpan.types.compaction import Compaction
from panpan.types.events import Compacted, Event, ModelEvent, Waiting
from panpan.types.llm import ModelRequest
from panpan.types.messages import (
    AssistantMessage,
    Message,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from tests.fakes.scripted_llm import Reply, ScriptedLLM, call, say
from tests.fakes.session import session_in
from tests.fakes.tools import looking
from tests.services.compaction.conversations import SUMMARY, conversations, is_paired, talking

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


class InterruptedLLM(ScriptedLLM):
    """Is interrupted in the first summary that it is asked for."""

    interrupt: Callable[[], object]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if "handover note" in request.system and (interrupt := self.__dict__.pop("interrupt", None)) is not None:
            interrupt()
            await anyio.sleep_forever()
        async for event in super().stream(request):
            yield event


async def test_an_interrupt_while_room_is_made_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    llm = InterruptedLLM(*replies, say(SUMMARY), say("short"))
    hook = MakeRoom(Compactor(), SETTINGS, 10_000, lambda _: None)
    async with session_in(tmp_path, llm, looking(), hooks=[hook]) as one:
        llm.interrupt = one.interrupt
        await turns(one, *(f"question {number} " for number in range(9)))
        assert one.conversation.compactions == []
        assert one.conversation.sent is one.conversation.messages
        events = await turns(one, "and now?")

    assert [event.compaction.trigger for event in events if isinstance(event, Compacted)] == ["auto"]
    assert is_paired(llm.histories[-1])
    assert "question 8" in str(llm.histories[-1])


async def test_one_turn_may_be_made_shorter_many_times(tmp_path: Path) -> None:
    rounds = iter(range(60))

    def answer(request: ModelRequest) -> AssistantMessage:
        if "handover note" in request.system:
            return say(SUMMARY)
        number = next(rounds)
        return say("all looked at") if number == 59 else call((f"c{number}", "Look", {}), text=f"{number} {WORDS}")

    async with session(tmp_path, *[answer] * 100) as one:
        one.parts = replace(one.parts, max_rounds=100)
        events = await turns(one, "look at all of it, and remember: teal")
        llm: Any = one.parts.model.llm

    compactions = [event for event in events if isinstance(event, Compacted)]
    assert len(compactions) > 3
    assert all("remember: teal" in str(history) for history in llm.histories)
    assert all(is_paired(history) for history in llm.histories)
    assert len({str(history) for history in llm.histories}) == len(llm.histories)
    assert max(sum(len(message.text) for message in history) for history in llm.histories) < 4 * 10_000


async def test_a_spent_budget_lets_no_summary_be_asked_for(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}", cost_usd=0.3) for number in range(4)]
    async with session_in(tmp_path, ScriptedLLM(*replies), hooks=[Budget(1.0)]) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        with pytest.raises(BudgetError, match="is spent"):
            await one.compact()
        llm: Any = one.parts.model.llm

    assert len(llm.requests) == 4


async def test_where_a_summary_spends_the_budget_the_request_behind_it_is_not_sent(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}", cost_usd=0.01) for number in range(8)]
    room = MakeRoom(Compactor(), SETTINGS, 10_000, lambda _: None)
    llm = ScriptedLLM(*replies, say(SUMMARY, cost_usd=1.0), say("short"))
    async with session_in(tmp_path, llm, looking(), hooks=[Budget(0.5), room]) as one:
        with pytest.raises(BudgetError, match="is spent"):
            await turns(one, *(f"question {number} " for number in range(9)))

    assert len(llm.requests) == 9
    assert len(one.conversation.compactions) == 1


async def test_a_session_whose_newest_calls_are_open_can_be_made_shorter(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, call(("1", "Look", {})), say("looked")) as one:
        await turns(one, *(f"question {number}" for number in range(5)))
        log = one.parts.log.path
    lines = log.read_text().splitlines(keepends=True)
    open_at = next(number for number, line in enumerate(lines) if '"tool_use"' in line)
    log.write_text("".join(lines[: open_at + 1]))
    async with session(tmp_path, say(SUMMARY), say("on")) as resumed:
        await resumed.compact()
        events = await turns(resumed, "go on")
        assert is_paired(resumed.conversation.sent)
        sent = wire(resumed.conversation.sent)
    async with session(tmp_path) as again:
        assert wire(again.conversation.sent) == sent

    assert events


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_works_on_both_event_loops(tmp_path: Path, backend: str) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]

    async def all_of_it() -> list[str]:
        async with session(tmp_path, *replies, say(SUMMARY), say("short"), say(SUMMARY)) as one:
            await turns(one, *(f"question {number} " for number in range(9)))
            await one.compact("heed it")
            one.undo_compaction()
            return [compaction.trigger for compaction in one.conversation.compactions]

    assert anyio.run(all_of_it, backend=backend) == ["auto", "manual", "undo"]


async def test_undo_after_a_rewind_and_after_going_on_with_the_session(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), say("more")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one.compact()
        await turns(one, "now?", "and now?")
        prompts = [message for message in one.conversation.messages if isinstance(message, UserMessage)]
        await one.rewind(prompts[-1].uuid)
    async with session(tmp_path, say("whole")) as resumed:
        undo = resumed.undo_compaction()
        assert resumed.conversation.sent == resumed.conversation.messages
        assert undo.tokens_after > undo.tokens_before
        with pytest.raises(ConfigError, match="no compaction"):
            resumed.undo_compaction()
        await turns(resumed, "go on")
        llm: Any = resumed.parts.model.llm

    assert len(llm.histories[0]) == 11


async def test_a_fork_sends_what_the_session_sends(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one.compact()
        await turns(one, "now?")
        log = one.parts.log.path
    copy = folded(read_records(fork(log, tmp_path.parent / "forks")))
    forked = Conversation(messages=copy.messages, compactions=copy.compactions)

    assert one.conversation.sent is not one.conversation.messages
    assert wire(forked.sent) == wire(one.conversation.sent)


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
