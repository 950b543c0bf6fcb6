from pathlib import Path

from panpan.core.conversation import Conversation
from panpan.services.repeated_calls import RepeatedCalls
from panpan.types.permission import Ask
from panpan.types.tool import Output
from tests.services.hook_fixtures import call_in


async def test_the_fourth_identical_call_in_a_row_asks(tmp_path: Path) -> None:
    hook = RepeatedCalls()

    decisions = [await hook.before_tool(call_in(tmp_path, seconds=1)) for _ in range(5)]

    assert [type(decision) for decision in decisions] == [type(None)] * 3 + [Ask] * 2
    assert "3 times in a row" in decisions[3].reason
    assert "something different" in decisions[3].reason


async def test_another_call_between_starts_the_count_again(tmp_path: Path) -> None:
    hook = RepeatedCalls()
    calls = [call_in(tmp_path, seconds=1)] * 3 + [call_in(tmp_path, seconds=2)] + [call_in(tmp_path, seconds=1)] * 3

    assert [await hook.before_tool(call) for call in calls] == [None] * 7


async def test_the_same_arguments_of_another_tool_are_another_call(tmp_path: Path) -> None:
    hook = RepeatedCalls()
    calls = [call_in(tmp_path), call_in(tmp_path), call_in(tmp_path), call_in(tmp_path, name="Other")]

    assert [await hook.before_tool(call) for call in calls] == [None] * 4


async def test_defaults_that_are_left_out_make_no_difference(tmp_path: Path) -> None:
    hook = RepeatedCalls()

    for _ in range(3):
        await hook.before_tool(call_in(tmp_path))

    assert isinstance(await hook.before_tool(call_in(tmp_path, seconds=0.0)), Ask)


async def test_after_a_yes_it_asks_again_only_after_three_more(tmp_path: Path) -> None:
    hook = RepeatedCalls()
    for number in range(4):
        decision = await hook.before_tool(call_in(tmp_path, tool_use_id=str(number)))
    assert isinstance(decision, Ask)

    await hook.after_tool(call_in(tmp_path, tool_use_id="3"), Output("done"))

    later = [await hook.before_tool(call_in(tmp_path, tool_use_id=str(number))) for number in range(4, 8)]
    assert [type(decision) for decision in later] == [type(None)] * 3 + [Ask]


async def test_calls_that_ran_before_the_question_do_not_answer_it(tmp_path: Path) -> None:
    hook = RepeatedCalls()
    for number in range(4):
        await hook.before_tool(call_in(tmp_path, tool_use_id=str(number)))

    await hook.after_tool(call_in(tmp_path, tool_use_id="0"), Output("done"))

    assert isinstance(await hook.before_tool(call_in(tmp_path, tool_use_id="4")), Ask)


async def test_a_new_turn_starts_the_count_again(tmp_path: Path) -> None:
    hook = RepeatedCalls()
    for _ in range(3):
        await hook.before_tool(call_in(tmp_path))

    await hook.turn_started(Conversation())

    assert await hook.before_tool(call_in(tmp_path)) is None
