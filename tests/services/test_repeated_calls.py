from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.core.conversation import Conversation
from panpan.errors import AnswerNeededError
from panpan.services.repeated_calls import RepeatedCalls
from panpan.tools.tasks.task_output import TaskOutputInput, TaskOutputTool
from panpan.types.content import ToolUseBlock
from panpan.types.events import Event
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage
from panpan.types.permission import Ask, Behaviour, Deny, PermissionAnswer, PermissionQuestion
from panpan.types.tool import Output
from tests.core.test_conversation import assert_valid
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.tools import looking
from tests.services.hook_fixtures import call_in


async def test_the_fourth_identical_call_in_a_row_asks(tmp_path: Path) -> None:
    hook = RepeatedCalls()

    decisions = [await hook.before_tool(call_in(tmp_path, seconds=1)) for _ in range(5)]

    assert [type(decision) for decision in decisions] == [type(None)] * 3 + [Ask] * 2


async def test_the_question_is_for_the_user_and_the_advice_for_the_model(tmp_path: Path) -> None:
    questions: list[PermissionQuestion] = []

    async def no(question: PermissionQuestion) -> PermissionAnswer:
        questions.append(question)
        return PermissionAnswer(is_allowed=False)

    same = [call((str(number), "Look", {})) for number in range(4)]
    async with (
        session_in(tmp_path, ScriptedLLM(*same, say("done")), looking(), hooks=[RepeatedCalls()], ask=no) as session,
        aclosing(session.submit("go")) as events,
    ):
        results = [event.text async for event in events if isinstance(event, ToolResultMessage)]

    (question,) = questions
    assert "the model has made this same call 3 times in a row" in question.reason
    assert "different" not in question.reason
    assert results[3].startswith("Look was not run. The user refused it.")
    assert results[3].endswith("look at the results so far and try something different.")


@pytest.mark.parametrize(("doom_loop", "decision"), [("ask", Ask), ("deny", Deny), ("allow", type(None))])
async def test_the_settings_say_what_happens_to_such_a_call(
    tmp_path: Path, doom_loop: Behaviour, decision: type
) -> None:
    hook = RepeatedCalls(doom_loop)

    found = [await hook.before_tool(call_in(tmp_path)) for _ in range(4)][-1]

    assert isinstance(found, decision)
    assert not isinstance(found, Ask | Deny) or found.reason.kind == "doom-loop"


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


async def events_of(root: Path, llm: ScriptedLLM) -> list[Event]:
    async with session_in(root, llm, looking(), hooks=[RepeatedCalls()]) as session:
        async with aclosing(session.submit("go")) as events:
            return [event async for event in events]


def unreadable(id_: str) -> AssistantMessage:
    use = ToolUseBlock(id=id_, name="Look", input={}, input_error="the arguments are not JSON")
    return AssistantMessage(content=(use,), model="scripted", stop_reason="tool_use")


WRONG = [
    [call((str(n), "Fly", {"to": "the moon"})) for n in range(9)],
    [call((str(n), "Look", {"seconds": "many"})) for n in range(9)],
    [unreadable(str(n)) for n in range(9)],
    [call((f"{n}a", "Fly", {}), (f"{n}b", "Fly", {}), (f"{n}c", "Swim", {})) for n in range(9)],
]


@pytest.mark.parametrize("replies", WRONG, ids=["unknown tool", "wrong arguments", "unreadable arguments", "several"])
async def test_the_fourth_round_of_calls_that_cannot_run_ends_the_turn_after_a_warning(
    tmp_path: Path, replies: list[AssistantMessage]
) -> None:
    llm = ScriptedLLM(*replies)

    with pytest.raises(AnswerNeededError, match="although it cannot run"):
        await events_of(tmp_path, llm)

    assert len(llm.requests) == 4
    assert [type(history[-1]) for history in llm.histories[1:]] == [
        ToolResultMessage,
        ToolResultMessage,
        SystemReminder,
    ]
    assert_valid(recorded(tmp_path))


async def test_calls_that_cannot_run_in_different_ways_go_on(tmp_path: Path) -> None:
    replies = [call((str(n), "Fly", {"to": n // 3})) for n in range(9)]

    await events_of(tmp_path, ScriptedLLM(*replies, say("done")))


async def test_a_call_that_runs_starts_the_count_of_those_that_cannot_again(tmp_path: Path) -> None:
    replies = [
        call((str(n), "Fly", {})) if n % 4 else call((str(n), "Look", {"seconds": n / 1e9}), (f"{n}a", "Fly", {}))
        for n in range(12)
    ]

    await events_of(tmp_path, ScriptedLLM(*replies, say("done")))


async def test_identical_calls_that_cannot_run_count_once_in_a_reply(tmp_path: Path) -> None:
    reply = call(*((str(n), "Fly", {}) for n in range(9)))

    await events_of(tmp_path, ScriptedLLM(reply, say("I cannot fly")))


async def test_a_new_turn_starts_the_count_of_those_that_cannot_run_again(tmp_path: Path) -> None:
    replies = [call((str(n), "Fly", {})) for n in range(6)]
    llm = ScriptedLLM(*replies[:3], say("one"), *replies[3:], say("two"))
    async with session_in(tmp_path, llm, looking(), hooks=[RepeatedCalls()]) as session:
        for _ in range(2):
            async with aclosing(session.submit("go")) as events:
                seen = [event async for event in events]

    assert [event.text for event in seen if isinstance(event, AssistantMessage)][-1] == "two"


async def test_a_call_that_waits_for_something_may_be_repeated(tmp_path: Path) -> None:
    waiting = replace(call_in(tmp_path), tool=TaskOutputTool())
    hook = RepeatedCalls()

    async def decision(**arguments: object) -> object:
        args = TaskOutputInput.model_validate({"task_id": "0a1b2c3d", **arguments})
        return await hook.before_tool(replace(waiting, args=args))

    assert [await decision() for _ in range(8)] == [None] * 8
    assert isinstance([await decision(block=False) for _ in range(4)][-1], Ask)
