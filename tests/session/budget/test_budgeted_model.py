from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import anyio
import pytest

from panpan.config.models import Price
from panpan.errors import BudgetError, ProviderError
from panpan.session.budget.budget import ESTIMATED, Budget
from panpan.session.budget.budgeted_model import LEAST_OUTPUT_TOKENS, WAITING, BudgetedModel
from panpan.session.budget.spending import Spending
from panpan.session.context_usage import max_tokens_of
from panpan.types.agent import SpendingLimits
from panpan.types.content import Base64Source, ImageBlock, ThinkingBlock
from panpan.types.events import BlockStarted, ModelEvent, ReplyStarted, RetryScheduled, TextDelta, Waiting
from panpan.types.llm import ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Usage, UserMessage
from tests.fakes.scripted_llm import PricedLLM, ScriptedLLM, say

PRICE = Price.flat(1_000, 10_000, cache_write_usd=1_250)
"""A tenth of a cent for a token of the request, a cent for one of the reply."""
REQUEST = ModelRequest("sys", (), [UserMessage.of("x" * 300)])
INPUT = max_tokens_of(REQUEST)


async def asked(model: BudgetedModel, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


def priced(text: str, *, usd: float = 0.0, **usage: int) -> AssistantMessage:
    return say(text, cost_usd=usd).model_copy(update={"usage": Usage(**usage)})


def test_most_tokens_is_the_count_or_above_the_estimate() -> None:
    tools = (ToolDefinition("Look", "looks", {"type": "object"}),)
    counted = say("yes").model_copy(update={"usage": Usage(input_tokens=500, output_tokens=7)})
    earlier = [UserMessage.of("a" * 40_000), counted]

    assert 100 < INPUT < 110
    assert max_tokens_of(ModelRequest("sys", tools, REQUEST.messages)) > INPUT
    assert max_tokens_of(ModelRequest("sys", tools, [*earlier, UserMessage.of("b" * 30)])) == 507 + 11
    assert max_tokens_of(ModelRequest("sys", tools, [*earlier, UserMessage.of("b" * 30)], (), 2, 90)) == 131  # type: ignore[arg-type]


async def test_reply_cost_is_counted_and_the_rest_returned() -> None:
    budget = Budget(limits=SpendingLimits(usd=100.0, tokens=10_000))
    llm = PricedLLM(priced("yes", usd=0.5, input_tokens=INPUT, output_tokens=5), price=PRICE)

    await asked(BudgetedModel(llm, budget))

    assert (budget.spent.usd, budget.spent.tokens, budget.spent.calls) == (0.5, INPUT + 5, 1)
    assert (budget.reserved.usd, budget.reserved.tokens) == (0, 0)
    assert llm.requests[0].max_output_tokens is None


async def test_running_request_reserves_input_and_longest_reply() -> None:
    budget = Budget(limits=SpendingLimits(usd=100.0))
    llm = PricedLLM(say("yes"), price=PRICE, max_output_tokens=2_000)

    async with aclosing(BudgetedModel(llm, budget).stream(REQUEST)) as events:
        await anext(events)
        assert budget.reserved.tokens == INPUT + 2_000
        assert budget.reserved.usd == pytest.approx(INPUT * 1_250e-6 + 2_000 * 0.01)


async def test_request_over_the_budget_is_not_sent() -> None:
    llm = PricedLLM(say("yes"), price=PRICE)

    with pytest.raises(BudgetError, match=r"^the next request may cost \$1.* raise --max-budget-usd$"):
        await asked(BudgetedModel(llm, Budget(limits=SpendingLimits(usd=5.0))))
    with pytest.raises(BudgetError, match="raise --max-tokens"):
        await asked(BudgetedModel(llm, Budget(limits=SpendingLimits(tokens=500))))

    assert llm.requests == []


async def test_request_asks_for_a_shorter_reply_within_its_budget() -> None:
    by_money, by_tokens = PricedLLM(say("a"), price=PRICE), PricedLLM(say("a"), price=PRICE)
    await asked(BudgetedModel(by_money, Budget(limits=SpendingLimits(usd=15.0 + INPUT * 1_250e-6))))
    await asked(BudgetedModel(by_tokens, Budget(limits=SpendingLimits(tokens=1_200 + INPUT))))

    assert by_money.requests[0].max_output_tokens in (1_499, 1_500)
    assert by_tokens.requests[0].max_output_tokens == 1_200


async def test_thinking_reserves_room_of_its_own() -> None:
    limits = SpendingLimits(tokens=INPUT + LEAST_OUTPUT_TOKENS + 3_000)
    llm = PricedLLM(say("yes"), max_output_tokens=9_000, thinking=3_000)
    await asked(BudgetedModel(llm, Budget(limits=limits)))
    assert llm.requests[0].max_output_tokens == LEAST_OUTPUT_TOKENS + 3_000

    with pytest.raises(BudgetError):
        await asked(
            BudgetedModel(PricedLLM(say("yes"), max_output_tokens=9_000, thinking=3_001), Budget(limits=limits))
        )


async def test_money_limit_without_a_price_refuses_the_request() -> None:
    budget = Budget(limits=SpendingLimits(usd=1.0))
    for llm in (PricedLLM(say("yes"), price=None), ScriptedLLM(say("yes"))):
        with pytest.raises(BudgetError, match="price of the next request is not known"):
            await asked(BudgetedModel(llm, budget))


async def test_failed_request_costs_nothing() -> None:
    budget = Budget(limits=SpendingLimits(tokens=10_000, calls=1))

    with pytest.raises(ProviderError):
        await asked(BudgetedModel(PricedLLM(ProviderError("no", provider="p")), budget))

    assert (budget.spent.calls, budget.reserved.tokens) == (0, 0)


class Streaming(PricedLLM):
    """Streams the events that it is given, and then hangs."""

    def __init__(self, *events: ModelEvent) -> None:
        super().__init__(price=PRICE)
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        for event in self._events:
            yield event
        await anyio.sleep_forever()


BEGUN = (ReplyStarted("id", "m", Usage(input_tokens=70)), BlockStarted(0, "text"), TextDelta(0, "a" * 40))


async def test_interrupted_reply_is_counted_and_noted() -> None:
    noted: list[tuple[Spending, str]] = []
    budget = Budget(note=lambda spending, cause: noted.append((spending, cause)))
    with anyio.CancelScope() as scope:
        async with aclosing(BudgetedModel(Streaming(*BEGUN), budget.child("a")).stream(REQUEST)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    scope.cancel()

    spent = budget.spent
    assert (spent.tokens, spent.calls, spent.usd) == (80, 1, pytest.approx(70e-3 + 10 * 0.01))
    assert noted == [(spent, "interrupted reply")]
    assert spent.by_model["m"].estimated_replies == 1


LONG = ModelRequest("s" * 4_000, (), [UserMessage.of("x" * 36_000)])
"""About 10,000 tokens."""

UNUSABLE = [{}, {"input_tokens": 1}, {"input_tokens": 4_900, "output_tokens": 1}, {"output_tokens": 7}]


@pytest.mark.parametrize("usage", UNUSABLE)
async def test_incredible_count_costs_the_estimate_under_a_limit(usage: dict[str, int]) -> None:
    told: list[str] = []
    noted: list[Spending] = []
    limits = SpendingLimits(usd=1_000.0)
    budget = Budget(limits=limits, warn=told.append, note=lambda spending, cause: noted.append(spending))
    child = budget.child("a")
    replies = [priced("y" * 400, **usage) for _ in range(3)]
    llm = PricedLLM(*replies, price=PRICE)

    for _ in replies:
        await asked(BudgetedModel(llm, child), LONG)

    spent = budget.spent
    assert spent.usage.input_tokens == 3 * max_tokens_of(LONG)
    assert spent.usage.output_tokens == 3 * 100
    assert spent.known_usd > 3 * 8.0
    assert (spent.calls, spent.by_model["scripted"].replies, spent.by_model["scripted"].estimated_replies) == (3, 3, 3)
    assert sum(one.tokens for one in noted) + sum(reply.usage.context_tokens for reply in replies) == spent.tokens
    assert told == [ESTIMATED]


async def test_long_reply_with_few_claimed_tokens_costs_the_estimate() -> None:
    budget = Budget(limits=SpendingLimits(usd=1_000.0))
    llm = PricedLLM(priced("y" * 4_000, input_tokens=10_000, output_tokens=1), price=PRICE)

    await asked(BudgetedModel(llm, budget), LONG)

    assert (budget.spent.usage.input_tokens, budget.spent.usage.output_tokens) == (10_000, 1_000)


async def test_request_measured_far_too_small_reserves_the_estimate() -> None:
    budget = Budget(limits=SpendingLimits(tokens=9_000))
    llm = PricedLLM(priced("yes"), price=PRICE)

    with pytest.raises(BudgetError):
        await asked(BudgetedModel(llm, budget), replace(LONG, measured_messages=1, measured_tokens=12))


async def test_low_count_is_believed_without_a_limit() -> None:
    told: list[str] = []
    budget = Budget(warn=told.append)
    llm = PricedLLM(priced("yes", input_tokens=3, output_tokens=1), priced("yes"), price=PRICE)

    await asked(BudgetedModel(llm, budget), LONG)
    assert (budget.spent.tokens, budget.spent.by_model["scripted"].estimated_replies) == (4, 0)
    await asked(BudgetedModel(llm, budget), LONG)
    assert (budget.spent.tokens, budget.spent.by_model["scripted"].estimated_replies) == (5 + max_tokens_of(LONG), 1)
    assert told == []


async def test_pictures_and_thinking_make_no_count_incredible() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="AAAA"))
    thought = AssistantMessage(content=(ThinkingBlock(thinking="t" * 40_000),), model="scripted")
    request = ModelRequest("s" * 400, (), [UserMessage(content=(picture,) * 20), thought])
    budget = Budget(limits=SpendingLimits(tokens=100_000))

    await asked(BudgetedModel(PricedLLM(priced("yes", input_tokens=101, output_tokens=1)), budget), request)

    assert budget.spent.tokens == 102


async def test_input_is_estimated_until_the_provider_counts_it() -> None:
    budget = Budget()
    async with aclosing(BudgetedModel(Streaming(ReplyStarted("id", "m")), budget).stream(REQUEST)) as events:
        await anext(events)

    assert budget.spent.tokens == INPUT


async def test_broken_attempt_counts_too() -> None:
    budget = Budget()
    events = (*BEGUN, RetryScheduled(2, "dropped", 0.0), *BEGUN)
    async with aclosing(BudgetedModel(Streaming(*events), budget).stream(REQUEST)) as stream:
        for _ in events:
            await anext(stream)

    assert (budget.spent.tokens, budget.spent.calls) == (160, 2)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_request_waits_for_another_reservation_to_end(backend: str) -> None:
    async def main() -> None:
        root = Budget(limits=SpendingLimits(tokens=INPUT + 2_000))
        first, second = PricedLLM(say("a")), PricedLLM(say("b"))
        seen: list[ModelEvent] = []
        is_waiting = anyio.Event()

        async def later() -> None:
            async with aclosing(BudgetedModel(second, root.child("b")).stream(REQUEST)) as events:
                async for event in events:
                    seen.append(event)
                    if event == Waiting(WAITING):
                        is_waiting.set()

        async with anyio.create_task_group() as tasks:
            async with aclosing(BudgetedModel(first, root.child("a")).stream(REQUEST)) as events:
                await anext(events)
                tasks.start_soon(later)
                await is_waiting.wait()
                assert second.requests == []
                async for _ in events:
                    pass

        assert seen[-1] == say("b").model_copy(update={"uuid": seen[-1].uuid})  # type: ignore[union-attr]
        assert (root.spent.calls, root.reserved.tokens) == (2, 0)

    anyio.run(main, backend=backend)


async def test_release_during_the_wait_notice_ends_the_wait() -> None:
    root = Budget(limits=SpendingLimits(tokens=INPUT + 2_000))
    first = root.child("a")
    reserved = first.reserve(tokens=INPUT + 1_500)

    with anyio.fail_after(20):
        async with aclosing(BudgetedModel(PricedLLM(say("b")), root.child("b")).stream(REQUEST)) as events:
            assert await anext(events) == Waiting(WAITING)
            first.release(reserved)
            rest = [event async for event in events]

    assert isinstance(rest[-1], AssistantMessage)


async def test_request_after_most_is_spent_is_refused() -> None:
    budget = Budget(limits=SpendingLimits(tokens=5_000))
    llm = PricedLLM(priced("a", input_tokens=4_000, output_tokens=10))
    await asked(BudgetedModel(llm, budget))

    with pytest.raises(BudgetError, match="4,010 tokens of a budget of 5,000 tokens are spent"):
        await asked(BudgetedModel(llm, budget))
