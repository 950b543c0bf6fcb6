"""What a session cost, in words."""

from panpan.services.session_costs import session_costs
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Usage
from panpan.ui.repl.commands.costs_view import cost_pairs

COUNTED = AssistantMessage(
    content=(TextBlock(text="yes"),), model="m", usage=Usage(input_tokens=3, output_tokens=1), cost_usd=0.25
)
CUT = AssistantMessage(content=(TextBlock(text="ye"),), model="m", stop_reason="interrupted")


def test_an_interrupted_reply_is_said_and_the_rest_is_known() -> None:
    pairs = dict(cost_pairs(session_costs([COUNTED, CUT])))

    assert pairs["Together"] == "$0.2500"
    assert pairs["Not counted"].startswith("1 interrupted reply:")
    assert "not known" not in pairs["m"]


def test_several_are_counted_and_none_is_not_mentioned() -> None:
    assert dict(cost_pairs(session_costs([COUNTED, CUT, CUT])))["Not counted"].startswith("2 interrupted replies:")
    assert "Not counted" not in dict(cost_pairs(session_costs([COUNTED])))
