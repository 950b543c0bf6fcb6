"""A budget holds for whole turns: what it ends leaves a session that can go on."""

from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from panpan.config.models import Price
from panpan.core.conversation import ENDED
from panpan.errors import BudgetError
from panpan.session.budget.budget import Budget
from panpan.session.budget.budgeted_model import LEAST_OUTPUT_TOKENS
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.session.log.fold import fold_records
from panpan.session.log.session_log import read_records
from panpan.session.session import Session
from panpan.types.agent import SpendingLimits
from panpan.types.events import Event, ReplyStarted, RetryScheduled, TextDelta, TurnEnded
from panpan.types.messages import ToolResultMessage, Usage
from tests.fakes.scripted_llm import PricedLLM, call, say
from tests.fakes.session import log_path, recorded, session_in
from tests.fakes.tools import looking
from tests.session.budget.test_budgeted_model import Streaming


async def turn(session: Session, prompt: str = "go") -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_turn_over_its_time_ends_in_the_middle_of_a_call(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        budget = Budget(limits=SpendingLimits(seconds=0.2))
        llm = PricedLLM(call(("1", "Look", {"seconds": 60})))
        async with session_in(tmp_path, llm, looking(), budget=budget) as session:
            with pytest.raises(BudgetError, match=r"the 0\.2 seconds that the turns may take are over"):
                await turn(session)
            with pytest.raises(BudgetError, match="are over"):
                await turn(session)

    anyio.run(main, backend=backend)
    results = [message for message in recorded(tmp_path) if isinstance(message, ToolResultMessage)]
    assert [result.text for result in results] == [ENDED]


@pytest.mark.parametrize("limits", [SpendingLimits(), SpendingLimits(usd=1_000.0)])
async def test_turn_ended_holds_the_counts_of_the_budget(tmp_path: Path, limits: SpendingLimits) -> None:
    told = say("y" * 400, cost_usd=0.1).model_copy(update={"usage": Usage(input_tokens=1, output_tokens=1)})
    budget = Budget(limits=limits)
    sums = Spending()
    async with session_in(tmp_path, PricedLLM(told, told, price=Price.flat(2, 8)), budget=budget) as session:
        for _ in range(2):
            *_, ended = await turn(session, "z" * 4_000)
            assert isinstance(ended, TurnEnded)
            assert ended.is_cost_estimated is budget.is_limited
            sums.add(Spending({"m": ModelCosts("m", usage=ended.usage, known_cost_usd=ended.cost_usd or 0.0)}))

    assert (sums.usage, sums.usd) == (budget.spent.usage, pytest.approx(budget.known_usd))
    assert (sums.tokens > 2_000) is budget.is_limited


async def test_interrupted_reply_stays_spent_on_resuming(tmp_path: Path) -> None:
    llm = Streaming(ReplyStarted("id", "m", Usage(input_tokens=70)), TextDelta(0, "a" * 40))
    async with session_in(tmp_path, llm) as session, aclosing(session.submit("go")) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                session.interrupt()

    spent = fold_records(read_records(log_path(tmp_path))).spent
    assert (spent.tokens, spent.calls) == (80, 1)


async def test_budget_ends_the_turn_between_rounds_with_all_answered(tmp_path: Path) -> None:
    used = call(("1", "Look", {})).model_copy(update={"usage": Usage(input_tokens=9_000)})
    budget = Budget(limits=SpendingLimits(tokens=10_000))
    async with session_in(tmp_path, PricedLLM(used, say("never")), looking(), budget=budget) as session:
        with pytest.raises(BudgetError, match="9,000 tokens of a budget of 10,000 tokens are spent"):
            await turn(session)
        budget.limits = SpendingLimits(tokens=100_000)
        events = await turn(session, "go on")

    assert any(getattr(event, "text", "") == "never" for event in events)


async def test_pause_before_a_retry_is_passed_on(tmp_path: Path) -> None:
    llm = Streaming(RetryScheduled(2, "dropped", 0.0), TextDelta(0, "a"))
    budget = Budget(limits=SpendingLimits(tokens=LEAST_OUTPUT_TOKENS + 100))
    async with session_in(tmp_path, llm, budget=budget) as session, aclosing(session.submit("go")) as events:
        seen = [await anext(events), await anext(events)]

    assert isinstance(seen[0], RetryScheduled)
