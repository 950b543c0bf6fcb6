from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.capabilities.guards.size_limits import InterruptNotice, ReplyLimits
from panpan.core.conversation import ENDED_BEFORE, Conversation
from panpan.errors import ContextOverflowError, PanpanError, ProviderError
from panpan.faces.turn_text import note_on_end
from panpan.session.session import Session
from panpan.types.content import ThinkingBlock
from panpan.types.events import Event, TurnEnded
from panpan.types.messages import AssistantMessage, StopReason, SystemReminder, ToolResultMessage
from tests.capabilities.guards.hook_fixtures import after, reply, round_of
from tests.core.test_conversation import assert_valid
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.tools import changing


@pytest.mark.parametrize(
    "empty",
    [reply(), reply("  \n"), AssistantMessage(content=(ThinkingBlock(thinking="hm"),)), reply(stop_reason="unknown")],
)
async def test_empty_reply_is_nudged_three_times_before_failing(empty: AssistantMessage) -> None:
    hook = ReplyLimits()

    additions = await after(hook, empty, empty, empty)

    assert [found[0].cause for found in additions] == ["reply:empty"] * 3
    with pytest.raises(ProviderError, match="4 empty replies in a row"):
        await hook.after_round(round_of(), empty)


@pytest.mark.parametrize("whole", [reply("done"), reply(has_tool=True, stop_reason="tool_use")])
async def test_full_reply_resets_the_count(whole: AssistantMessage) -> None:
    hook = ReplyLimits()

    additions = await after(hook, reply(), reply(), reply(), whole, reply())

    assert [len(found) for found in additions] == [1, 1, 1, 0, 1]


async def test_new_turn_resets_the_count() -> None:
    hook = ReplyLimits()
    await after(hook, reply(), reply(), reply())

    await hook.turn_started(Conversation())

    assert await after(hook, reply()) != [()]


async def test_cut_reply_is_continued_three_times() -> None:
    cut = reply("and so", stop_reason="max_tokens")

    additions = await after(ReplyLimits(), cut, cut, cut, cut)

    assert [len(found) for found in additions] == [1, 1, 1, 0]
    assert additions[0][0].cause == "reply:cut"
    assert "cut off" in (note_on_end(cut) or "")
    assert note_on_end(reply("done")) is None


async def test_cut_reply_in_the_last_round_is_not_continued() -> None:
    assert await after(ReplyLimits(), reply("and so", stop_reason="max_tokens"), number=10) == [()]


async def test_cut_reply_with_a_call_is_answered_by_its_result() -> None:
    assert await after(ReplyLimits(), reply("x", stop_reason="max_tokens", has_tool=True)) == [()]


@pytest.mark.parametrize("stop_reason", ["pause_turn", "interrupted"])
async def test_paused_reply_is_not_empty(stop_reason: str) -> None:
    assert await after(ReplyLimits(), reply(stop_reason=stop_reason)) == [()]  # type: ignore[arg-type]


async def test_refusal_ends_the_turn_with_a_clear_line() -> None:
    with pytest.raises(ProviderError, match="the model refused"):
        await ReplyLimits().after_reply(round_of(), reply("I", stop_reason="refusal"))


async def test_full_context_window_ends_the_turn_with_advice() -> None:
    with pytest.raises(ContextOverflowError, match="start a new session"):
        await ReplyLimits().after_reply(round_of(), reply("I", stop_reason="model_context_window_exceeded"))


@pytest.mark.parametrize("stop_reason", ["refusal", "model_context_window_exceeded"])
async def test_calls_of_a_reply_that_ends_the_turn_do_not_run(tmp_path: Path, stop_reason: StopReason) -> None:
    change = changing()
    bad = call(("1", "Change", {}), ("2", "Change", {})).model_copy(update={"stop_reason": stop_reason})
    llm = ScriptedLLM(bad, say("better"))

    async with session_in(tmp_path, llm, change, hooks=[ReplyLimits(), InterruptNotice()]) as session:
        with pytest.raises(PanpanError):
            await events_of(session)
        again = await events_of(session)

    assert change.log == []
    assert isinstance(again[-1], TurnEnded)
    assert [(m.tool_use_id, m.text, m.is_error) for m in llm.histories[1] if isinstance(m, ToolResultMessage)] == [
        ("1", ENDED_BEFORE, True),
        ("2", ENDED_BEFORE, True),
    ]
    assert not any(isinstance(message, SystemReminder) for message in llm.histories[1]), "nobody interrupted anything"
    assert_valid(recorded(tmp_path))


async def events_of(session: Session) -> list[Event]:
    async with aclosing(session.submit("go")) as events:
        return [event async for event in events]
