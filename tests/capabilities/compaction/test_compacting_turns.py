"""Room is made within turns: interrupted, many times, with a budget, with open calls, on both event loops."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.compaction.auto_compaction import AutoCompaction, Compactor
from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.errors import BudgetError, ConfigError
from panpan.session.budget.budget import Budget
from panpan.types.agent import SpendingLimits
from panpan.types.events import Compacted, ModelEvent
from panpan.types.llm import ModelRequest
from panpan.types.messages import (
    AssistantMessage,
)
from tests.capabilities.compaction.compacted_sessions import SETTINGS, WORDS, session, turns, wire
from tests.capabilities.compaction.conversations import SUMMARY, is_paired
from tests.fakes.scripted_llm import PricedLLM, ScriptedLLM, call, say
from tests.fakes.session import session_in
from tests.fakes.tools import looking


async def test_summary_cost_counts_for_the_budget_after_resuming(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}", cost_usd=0.01) for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY, cost_usd=1.0)) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one[CompactionCapability].compact()
    async with session_in(tmp_path, PricedLLM(), budget=Budget(limits=SpendingLimits(usd=0.5))) as resumed:
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


async def test_interrupt_during_automatic_compaction_changes_nothing(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    llm = InterruptedLLM(*replies, say(SUMMARY), say("short"))
    hook = AutoCompaction(Compactor(), SETTINGS, lambda: 10_000, lambda _: None)
    async with session_in(tmp_path, llm, looking(), hooks=[hook]) as one:
        llm.interrupt = one.interrupt
        await turns(one, *(f"question {number} " for number in range(9)))
        assert one.conversation.compactions == []
        assert one.conversation.sent is one.conversation.messages
        events = await turns(one, "and now?")

    assert [event.compaction.trigger for event in events if isinstance(event, Compacted)] == ["auto"]
    assert is_paired(llm.histories[-1])
    assert "question 8" in str(llm.histories[-1])


async def test_turn_may_be_compacted_many_times(tmp_path: Path) -> None:
    rounds = iter(range(60))

    def answer(request: ModelRequest) -> AssistantMessage:
        if "handover note" in request.system:
            return say(SUMMARY)
        number = next(rounds)
        return say("all looked at") if number == 59 else call((f"c{number}", "Look", {}), text=f"{number} {WORDS}")

    async with session(tmp_path, *[answer] * 100, max_rounds=100) as one:
        events = await turns(one, "look at all of it, and remember: teal")
        llm: Any = one.agent.model.llm

    compactions = [event for event in events if isinstance(event, Compacted)]
    assert len(compactions) > 3
    assert all("remember: teal" in str(history) for history in llm.histories)
    assert all(is_paired(history) for history in llm.histories)
    assert len({str(history) for history in llm.histories}) == len(llm.histories)
    assert max(sum(len(message.text) for message in history) for history in llm.histories) < 4 * 10_000


async def test_spent_budget_allows_no_summary(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}", cost_usd=0.3) for number in range(4)]
    async with session_in(tmp_path, PricedLLM(*replies), budget=Budget(limits=SpendingLimits(usd=1.0))) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        with pytest.raises(BudgetError, match="is spent"):
            await one[CompactionCapability].compact()
        llm: Any = one.agent.model.llm

    assert len(llm.requests) == 4


async def test_summary_that_spends_the_budget_stops_the_next_request(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}", cost_usd=0.01) for number in range(8)]
    room = AutoCompaction(Compactor(), SETTINGS, lambda: 10_000, lambda _: None)
    llm = PricedLLM(*replies, say(SUMMARY, cost_usd=1.0), say("short"))
    budget = Budget(limits=SpendingLimits(usd=0.5))
    async with session_in(tmp_path, llm, looking(), hooks=[room], budget=budget) as one:
        with pytest.raises(BudgetError, match="is spent"):
            await turns(one, *(f"question {number} " for number in range(9)))

    assert len(llm.requests) == 9
    assert len(one.conversation.compactions) == 1


async def test_session_with_open_calls_can_be_compacted(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, call(("1", "Look", {})), say("looked")) as one:
        await turns(one, *(f"question {number}" for number in range(5)))
        log = one.agent.transcript.log.path
    lines = log.read_text().splitlines(keepends=True)
    open_at = next(number for number, line in enumerate(lines) if '"tool_use"' in line)
    log.write_text("".join(lines[: open_at + 1]))
    async with session(tmp_path, say(SUMMARY), say("on")) as resumed:
        await resumed[CompactionCapability].compact()
        events = await turns(resumed, "go on")
        assert is_paired(resumed.conversation.sent)
        sent = wire(resumed.conversation.sent)
    async with session(tmp_path) as again:
        assert wire(again.conversation.sent) == sent

    assert events


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_compaction_works_on_both_event_loops(tmp_path: Path, backend: str) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]

    async def all_of_it() -> list[str]:
        async with session(tmp_path, *replies, say(SUMMARY), say("short"), say(SUMMARY)) as one:
            await turns(one, *(f"question {number} " for number in range(9)))
            await one[CompactionCapability].compact("heed it")
            one[CompactionCapability].undo()
            return [compaction.trigger for compaction in one.conversation.compactions]

    assert anyio.run(all_of_it, backend=backend) == ["auto", "manual", "undo"]


async def test_compaction_is_refused_while_a_turn_runs(tmp_path: Path) -> None:
    async with session(tmp_path, say("hello")) as one:
        async for _ in one.submit("hi"):
            with pytest.raises(ConfigError, match="cannot be shortened while a turn runs"):
                await one[CompactionCapability].compact()
            with pytest.raises(ConfigError, match="cannot be undone while a turn runs"):
                one[CompactionCapability].undo()


async def test_interrupted_manual_compaction_changes_nothing(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    llm = InterruptedLLM(*replies, say(SUMMARY), say("on"))
    async with session_in(tmp_path, llm, looking()) as one:
        llm.interrupt = one.interrupt
        await turns(one, *(f"question {number}" for number in range(4)))

        assert await one[CompactionCapability].compact() is None
        assert one.conversation.compactions == []
        assert await turns(one, "go on")
