"""Costs of a session, in words."""

import pytest

from panpan.faces.terminal.commands.show_commands import budget_pairs, cost_pairs
from panpan.session.budget.budget import Budget, TurnClock
from panpan.session.budget.spending import SessionCosts, session_costs
from panpan.types.agent import SpendingLimits
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Usage

COUNTED = AssistantMessage(
    content=(TextBlock(text="yes"),), model="m", usage=Usage(input_tokens=3, output_tokens=1), cost_usd=0.25
)
CUT = AssistantMessage(content=(TextBlock(text="ye"),), model="m", stop_reason="interrupted")


def test_interrupted_reply_is_said_and_the_rest_is_known() -> None:
    pairs = dict(cost_pairs(session_costs([COUNTED, CUT]), 0.0))

    assert pairs["Together"] == "$0.2500"
    assert pairs["Not counted"].startswith("1 interrupted reply:")
    assert "not known" not in pairs["m"]


def test_interrupted_replies_are_counted_if_there_are_any() -> None:
    assert dict(cost_pairs(session_costs([COUNTED, CUT, CUT]), 0.0))["Not counted"].startswith("2 interrupted replies:")
    assert "Not counted" not in dict(cost_pairs(session_costs([COUNTED]), 0.0))


@pytest.mark.parametrize(
    ("waited_s", "said"),
    [
        (0.5, "1 min 40 s in turns, 8.0 s of it waiting for models"),
        (60.0, "40.0 s in turns (and 1 min 0 s for your answers), 8.0 s of it waiting for models"),
        (200.0, "0.0 s in turns (and 3 min 20 s for your answers), 8.0 s of it waiting for models"),
    ],
)
def test_time_in_which_the_user_was_waited_for_is_apart(waited_s: float, said: str) -> None:
    costs = SessionCosts(duration_s=100.0, api_duration_s=8.0)

    assert dict(cost_pairs(costs, waited_s))["Time"] == said


def test_estimated_costs_are_marked() -> None:
    cut = CUT.model_copy(update={"usage": COUNTED.usage, "cost_usd": 0.25})
    pairs = dict(cost_pairs(session_costs([COUNTED, cut]), 0.0))

    assert pairs["Together"] == "~$0.5000"
    assert (
        pairs["Estimated"]
        == "the cost of 1 reply that was cut short or came without a credible count; it is in the sums"
    )


def test_tree_of_budgets_shows_who_spent_what_and_of_what() -> None:
    root = Budget(limits=SpendingLimits(usd=2.0, tokens=1_000), clock=TurnClock(lambda: 0.0))
    child = root.child("explore: find it", SpendingLimits(calls=3))
    for budget in (root, child, child.child("plan: " + "think " * 20)):
        budget.settle(budget.reserve(usd=0.0), COUNTED)

    assert dict(budget_pairs(root)) == {
        "Spent": "3 requests, 12 of 1,000 tokens, $0.7500 of $2.0000, 0.0 s",
        "· explore: find it": "2 of 3 requests, 8 tokens, $0.5000, 0.0 s",
        "·· plan: think think think think think…": "1 request, 4 tokens, $0.2500, 0.0 s",
    }


def test_budget_pairs_without_limits_and_subagents_are_empty() -> None:
    root = Budget()
    root.settle(root.reserve(), COUNTED)

    assert budget_pairs(root) == ()
