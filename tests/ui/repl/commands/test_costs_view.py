"""What a session cost, in words."""

import pytest

from panpan.services.session_costs import SessionCosts, session_costs
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Usage
from panpan.ui.repl.commands.costs_view import cost_pairs

COUNTED = AssistantMessage(
    content=(TextBlock(text="yes"),), model="m", usage=Usage(input_tokens=3, output_tokens=1), cost_usd=0.25
)
CUT = AssistantMessage(content=(TextBlock(text="ye"),), model="m", stop_reason="interrupted")


def test_an_interrupted_reply_is_said_and_the_rest_is_known() -> None:
    pairs = dict(cost_pairs(session_costs([COUNTED, CUT]), 0.0))

    assert pairs["Together"] == "$0.2500"
    assert pairs["Not counted"].startswith("1 interrupted reply:")
    assert "not known" not in pairs["m"]


def test_several_are_counted_and_none_is_not_mentioned() -> None:
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
def test_the_time_in_which_the_user_was_waited_for_is_apart(waited_s: float, said: str) -> None:
    costs = SessionCosts(duration_s=100.0, api_duration_s=8.0)

    assert dict(cost_pairs(costs, waited_s))["Time"] == said
