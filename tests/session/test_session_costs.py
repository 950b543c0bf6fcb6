import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.session.budget.spending import session_costs
from panpan.types.content import DiffDisplay, FileDiff, SummaryDisplay, TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, Usage, UserMessage


def reply(model: str, cost_usd: float | None = 0.0, **tokens: int) -> AssistantMessage:
    usage = Usage(**{f"{name}_tokens": count for name, count in tokens.items()})
    return AssistantMessage(
        content=(TextBlock(text="yes"),), model=model, usage=usage, cost_usd=cost_usd, duration_s=1.5
    )


def edited(*files: tuple[int, int]) -> ToolResultMessage:
    diffs = tuple(FileDiff(path="a.py", diff="", added=added, removed=removed) for added, removed in files)
    block = ToolResultBlock(tool_use_id="1", content=())
    return ToolResultMessage(result=block, display=DiffDisplay(files=diffs))


def at(second: float) -> str:
    """An id of version 7 that was made then."""
    digits = f"{round(second * 1000):012x}7000800000000000000"[:32].ljust(32, "0")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def test_costs_count_tokens_and_money_for_each_model() -> None:
    costs = session_costs(
        [
            reply("small", 0.25, input=10, output=1, cache_read_input=100, cache_creation_input=7),
            reply("large", 1.0, input=20, output=2),
            reply("small", 0.5, input=5, output=3),
        ]
    )

    assert list(costs.by_model) == ["small", "large"]
    assert costs.by_model["small"].usage == Usage(
        input_tokens=15, output_tokens=4, cache_read_input_tokens=100, cache_creation_input_tokens=7
    )
    assert costs.by_model["small"].cost_usd == 0.75
    assert costs.by_model["large"].replies == 1
    assert costs.cost_usd == 1.75
    assert costs.usage.input_tokens == 35


def test_costs_are_unknown_if_one_reply_has_no_price() -> None:
    costs = session_costs([reply("priced", 0.25), reply("other", None)])

    assert costs.cost_usd is None
    assert costs.known_cost_usd == 0.25
    assert costs.by_model["priced"].cost_usd == 0.25
    assert costs.by_model["other"].cost_usd is None


def test_costs_skip_an_interrupted_reply_without_tokens() -> None:
    cut = reply("priced", None).model_copy(update={"stop_reason": "interrupted"})

    costs = session_costs([reply("priced", 0.25, input=3), cut])

    assert (costs.cost_usd, costs.uncounted_replies) == (0.25, 1)
    assert costs.by_model["priced"].replies == 1
    assert costs.usage == Usage(input_tokens=3)


def test_costs_are_unknown_for_an_interrupted_unpriced_reply() -> None:
    cut = reply("other", None, input=3).model_copy(update={"stop_reason": "interrupted"})

    costs = session_costs([cut])

    assert (costs.cost_usd, costs.uncounted_replies) == (None, 0)


def test_costs_count_lines_of_diffs_only() -> None:
    summary = ToolResultMessage(
        result=ToolResultBlock(tool_use_id="2", content=()), display=SummaryDisplay(text="9 lines")
    )

    costs = session_costs([edited((3, 1), (10, 0)), summary, edited((0, 5))])

    assert (costs.lines_added, costs.lines_removed) == (13, 6)


def test_costs_count_model_time_of_replies() -> None:
    assert session_costs([reply("a"), reply("b")]).api_duration_s == 3.0


def test_costs_omit_time_between_turns() -> None:
    costs = session_costs(
        [
            UserMessage(uuid=at(1000), content=()),
            AssistantMessage(uuid=at(1004), content=()),
            AssistantMessage(uuid=at(1010), content=()),
            UserMessage(uuid=at(9000), content=()),
            AssistantMessage(uuid=at(9002.5), content=()),
        ]
    )

    assert costs.duration_s == pytest.approx(12.5)


def test_costs_omit_time_before_the_model_is_woken() -> None:
    costs = session_costs(
        [
            UserMessage(uuid=at(1000), content=()),
            AssistantMessage(uuid=at(1004), content=()),
            SystemReminder(uuid=at(5000), text="a task has ended", cause="task:1"),
            AssistantMessage(uuid=at(5003), content=()),
        ]
    )

    assert costs.duration_s == pytest.approx(7)


def test_reminder_within_a_turn_begins_no_other() -> None:
    calls = AssistantMessage(uuid=at(1004), content=(ToolUseBlock(id="1", name="Bash", input={}),))
    result = ToolResultMessage(uuid=at(1010), result=ToolResultBlock(tool_use_id="1", content=()))
    told = SystemReminder(uuid=at(1020), text="a task has ended", cause="task:1")

    assert session_costs([UserMessage(uuid=at(1000), content=()), calls, result, told]).duration_s == pytest.approx(20)


def test_ids_without_a_time_count_for_no_time() -> None:
    said = [
        UserMessage(uuid="m1", content=()),
        AssistantMessage(uuid="0b5b8dbb-64a0-4d2c-8b1f-2f0c8b3c9f00", content=()),
    ]

    assert session_costs(said).duration_s == 0.0


def test_session_without_messages_costs_nothing() -> None:
    costs = session_costs([])

    assert (costs.by_model, costs.cost_usd, costs.duration_s) == ({}, 0.0, 0.0)


replies = st.builds(reply, st.sampled_from("abc"), st.none() | st.floats(0, 100), input=st.integers(0, 1000))
results = st.builds(lambda added, removed: edited((added, removed)), st.integers(0, 50), st.integers(0, 50))


@given(st.lists(st.one_of(replies, results)), st.lists(st.one_of(replies, results)))
def test_costs_added_up_equal_costs_at_once(first: list[Message], second: list[Message]) -> None:
    grown = session_costs(first)
    for message in second:
        grown.add(message)

    whole = session_costs([*first, *second])

    assert grown.by_model == whole.by_model
    assert (grown.lines_added, grown.lines_removed) == (whole.lines_added, whole.lines_removed)
    assert grown.usage == whole.usage
