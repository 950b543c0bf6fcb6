import pytest

from panpan.errors import BudgetError
from panpan.services.budget import Budget, check_price_known
from panpan.types.messages import Usage, UserMessage
from tests.services.hook_fixtures import reply, round_of

USED = Usage(input_tokens=10, output_tokens=5)


async def test_a_request_is_sent_while_there_is_money() -> None:
    assert await Budget(1.0).before_request(round_of(reply("a", cost_usd=0.6))) == ()


async def test_no_request_is_sent_once_the_money_is_spent() -> None:
    hook = Budget(1.0)
    spent = [reply("a", cost_usd=0.6), UserMessage.of("more"), reply("b", cost_usd=0.4)]

    with pytest.raises(BudgetError, match=r"\$1\.0000 of a budget of \$1\.0000"):
        await hook.before_request(round_of(*spent))


async def test_each_reply_is_counted_once_over_many_rounds() -> None:
    hook = Budget(1.0)
    messages: list[object] = []

    for number in range(9):
        messages.append(reply(str(number), cost_usd=0.1))
        assert await hook.before_request(round_of(*messages)) == ()

    with pytest.raises(BudgetError):
        await hook.before_request(round_of(*messages, reply("9", cost_usd=0.2)))


async def test_what_a_compaction_removes_stays_spent() -> None:
    hook = Budget(1.0)
    await hook.before_request(round_of(reply("a", cost_usd=0.7)))

    with pytest.raises(BudgetError):
        await hook.before_request(round_of(reply("summary", cost_usd=0.4)))


async def test_what_was_counted_is_not_counted_again_when_newer_replies_are_gone() -> None:
    hook = Budget(1.0)
    first = reply("a", cost_usd=0.3)
    await hook.before_request(round_of(first, reply("b", cost_usd=0.3)))

    assert await hook.before_request(round_of(first, reply("c", cost_usd=0.3))) == ()


async def test_a_reply_without_a_known_price_stops_every_later_request() -> None:
    hook = Budget(1.0)
    replies = [reply("a", usage=USED, model="new-model"), reply("b", cost_usd=0.1)]

    for _ in range(2):
        with pytest.raises(BudgetError, match="price of a reply of new-model is not known"):
            await hook.before_request(round_of(*replies))


async def test_a_reply_without_a_known_price_cannot_be_counted() -> None:
    with pytest.raises(BudgetError, match="price of a reply of new-model is not known"):
        await Budget(1.0).before_request(round_of(reply("a", usage=USED, model="new-model")))


async def test_an_interrupted_reply_counts_as_nothing() -> None:
    interrupted = reply("a", usage=USED, stop_reason="interrupted")

    assert await Budget(1.0).before_request(round_of(interrupted)) == ()


def test_a_budget_needs_a_known_price_at_the_start() -> None:
    check_price_known(None, model="m", is_price_known=False)
    check_price_known(1.0, model="m", is_price_known=True)
    with pytest.raises(BudgetError, match="the price of m is not known"):
        check_price_known(1.0, model="m", is_price_known=False)
