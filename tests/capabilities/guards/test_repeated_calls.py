from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from itertools import repeat
from pathlib import Path

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.task_tools import TaskOutputInput, TaskOutputTool
from panpan.capabilities.guards.repeated_calls import RepeatedCalls
from panpan.core.tool import ToolContext
from panpan.errors import AnswerNeededError
from panpan.permissions.folder_gate import ApprovingAsker, DenyingAsker
from panpan.types.content import ToolUseBlock
from panpan.types.events import Event, Output, PermissionDecided, ToolYield
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage
from panpan.types.permission import Asker, Behaviour, PermissionAnswer, PermissionQuestion
from tests.core.test_conversation import assert_valid
from tests.fakes.askers import yes
from tests.fakes.context import context_in
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.tools import FakeTool, SleepInput, looking


class SameTool(FakeTool):
    """Answers the same each time, or, where it is told so, something new."""

    def __init__(self, *, answers: Iterator[str] | None = None, is_read_only: bool = True) -> None:
        super().__init__(is_read_only=is_read_only)
        self.answers = answers or repeat("as before")

    async def run(self, args: SleepInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        self.log.append(ctx.tool_use_id)
        yield Output(next(self.answers))


class Run:
    """One turn of a scripted model with a tool, and what it said and did."""

    def __init__(self, root: Path, *, doom_loop: Behaviour = "ask", ask: Asker | None = None) -> None:
        self.root = root
        self.doom_loop = doom_loop
        self.ask = ask or DenyingAsker()
        self.tool = SameTool()
        self.decisions: list[PermissionDecided] = []
        self.error = ""

    async def __call__(self, *replies: AssistantMessage) -> ScriptedLLM:
        llm = ScriptedLLM(*replies, say("done"))
        hooks = [RepeatedCalls(self.doom_loop)]
        async with session_in(self.root, llm, self.tool, hooks=hooks, ask=self.ask) as session:
            try:
                async with aclosing(session.submit("go")) as events:
                    self.decisions = [event async for event in events if isinstance(event, PermissionDecided)]
            except AnswerNeededError as error:
                self.error = str(error)
        return llm


def same(count: int, *, first: int = 0, **arguments: object) -> list[AssistantMessage]:
    return [call((str(number), "Look", arguments)) for number in range(first, first + count)]


def warnings_in(llm: ScriptedLLM) -> list[str]:
    return [message.text for message in llm.histories[-1] if isinstance(message, SystemReminder)]


@pytest.mark.parametrize("ask", [DenyingAsker(), ApprovingAsker()], ids=["nobody", "--yes"])
async def test_repeats_end_a_turn_after_the_model_was_told(tmp_path: Path, ask: Asker) -> None:
    run = Run(tmp_path, ask=ask)

    llm = await run(*same(20))

    assert "the model repeats the same call of Look although it gets the same result" in run.error
    assert run.tool.log == ["0", "1", "2"]
    assert len(llm.requests) == 6
    (warning,) = warnings_in(llm)
    assert warning.startswith("You have made the same call 3 times in a row, and its result was the same each time.")
    assert isinstance(llm.histories[3][-1], SystemReminder)
    assert_valid(recorded(tmp_path))


async def test_changing_result_never_counts_as_a_repeat(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.tool.answers = (f"line {number // 2}" for number in range(40))

    await run(*same(40))

    assert (run.error, len(run.tool.log)) == ("", 40)


async def test_repeats_in_one_reply_run_once_and_count_once(tmp_path: Path) -> None:
    run = Run(tmp_path)

    llm = await run(call(*((str(number), "Look", {}) for number in range(64))))

    results = [message for message in llm.histories[-1] if isinstance(message, ToolResultMessage)]
    assert [result.text for result in results] == ["as before"] * 64
    assert (run.error, run.tool.log) == ("", ["0"])


async def test_person_is_asked_once_before_a_repeat_runs(tmp_path: Path) -> None:
    questions: list[PermissionQuestion] = []

    async def no(question: PermissionQuestion) -> PermissionAnswer:
        questions.append(question)
        return PermissionAnswer(is_allowed=False)

    llm = await Run(tmp_path, ask=no)(*same(4))

    (question,) = questions
    assert question.reason == "the model has made this call 3 times in a row with the same result"
    (refused,) = [message.text for message in llm.histories[-1] if isinstance(message, ToolResultMessage)][3:]
    assert refused.startswith("Look was not run. The user refused it.")
    assert "Use that result, or try something different; the turn ends" in refused
    assert refused.endswith("try something different; the turn ends if you go on repeating the call.")


async def test_yes_allows_three_more_repeats(tmp_path: Path) -> None:
    asker = yes()
    run = Run(tmp_path, ask=asker)

    await run(*same(12))

    assert len(run.tool.log) == 12
    assert [question.tool_use_id for question in asker.questions] == ["3", "7", "11"]


@pytest.mark.parametrize(("doom_loop", "runs", "ends"), [("ask", 3, True), ("deny", 3, True), ("allow", 12, False)])
async def test_settings_decide_about_repeats(tmp_path: Path, doom_loop: Behaviour, runs: int, ends: bool) -> None:
    run = Run(tmp_path, doom_loop=doom_loop, ask=ApprovingAsker())

    await run(*same(12))

    assert (len(run.tool.log), bool(run.error)) == (runs, ends)
    stopped = [decided for decided in run.decisions if not decided.is_allowed]
    assert all(decided.reasons[0].kind == "doom-loop" for decided in stopped)


BETWEEN = [
    [*same(3), *same(1, first=3, seconds=0.001), *same(3, first=4)],
    [*same(3), call(("3", "Look", {}), ("4", "Look", {"seconds": 0.001})), *same(3, first=5)],
]


async def test_other_call_between_resets_the_count(tmp_path: Path) -> None:
    run = Run(tmp_path)

    await run(*BETWEEN[0])

    assert (len(run.tool.log), run.error) == (7, "")


async def test_repeat_beside_a_new_call_is_stopped_alone(tmp_path: Path) -> None:
    run = Run(tmp_path)

    await run(*BETWEEN[1])

    assert run.tool.log[3] == "4"


async def test_omitted_defaults_make_no_difference(tmp_path: Path) -> None:
    run = Run(tmp_path)

    await run(*same(3), *same(1, first=3, seconds=0.0))

    assert run.tool.log == ["0", "1", "2"]


async def test_name_of_a_kept_output_makes_no_difference(tmp_path: Path) -> None:
    run = Run(tmp_path)
    folder = context_in(tmp_path).outputs.directory
    run.tool.answers = (f"head\n[all of it is in {folder}/bash-{number}-0a1b2c3d.txt]" for number in range(9))

    await run(*same(9))

    assert len(run.tool.log) == 3


async def test_changes_in_one_reply_all_run(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.tool = SameTool(is_read_only=False)

    await run(call(*((str(number), "Look", {}) for number in range(5))))

    assert len(run.tool.log) == 5


async def test_new_turn_resets_the_count_of_repeats(tmp_path: Path) -> None:
    llm = ScriptedLLM(*same(3), say("one"), *same(3, first=3), say("two"))
    tool = SameTool()
    async with session_in(tmp_path, llm, tool, hooks=[RepeatedCalls()], ask=DenyingAsker()) as session:
        for _ in range(2):
            async with aclosing(session.submit("go")) as events:
                async for _event in events:
                    pass

    assert len(tool.log) == 6


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
async def test_fourth_round_of_impossible_calls_ends_the_turn(tmp_path: Path, replies: list[AssistantMessage]) -> None:
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


async def test_different_impossible_calls_go_on(tmp_path: Path) -> None:
    replies = [call((str(n), "Fly", {"to": n // 3})) for n in range(9)]

    await events_of(tmp_path, ScriptedLLM(*replies, say("done")))


async def test_running_call_resets_the_count_of_impossible_ones(tmp_path: Path) -> None:
    replies = [
        call((str(n), "Fly", {})) if n % 4 else call((str(n), "Look", {"seconds": n / 1e9}), (f"{n}a", "Fly", {}))
        for n in range(12)
    ]

    await events_of(tmp_path, ScriptedLLM(*replies, say("done")))


async def test_identical_impossible_calls_in_a_reply_count_once(tmp_path: Path) -> None:
    reply = call(*((str(n), "Fly", {}) for n in range(9)))

    await events_of(tmp_path, ScriptedLLM(reply, say("I cannot fly")))


async def test_new_turn_resets_the_count_of_impossible_calls(tmp_path: Path) -> None:
    replies = [call((str(n), "Fly", {})) for n in range(6)]
    llm = ScriptedLLM(*replies[:3], say("one"), *replies[3:], say("two"))
    async with session_in(tmp_path, llm, looking(), hooks=[RepeatedCalls()]) as session:
        for _ in range(2):
            async with aclosing(session.submit("go")) as events:
                seen = [event async for event in events]

    assert [event.text for event in seen if isinstance(event, AssistantMessage)][-1] == "two"


async def test_waiting_call_may_be_repeated(tmp_path: Path) -> None:
    class Waiting(SameTool):
        def may_be_repeated(self, args: SleepInput) -> bool:
            return True

    run = Run(tmp_path)
    run.tool = Waiting()

    await run(*same(9))

    assert len(run.tool.log) == 9


@pytest.mark.parametrize(("arguments", "waits"), [({}, True), ({"block": False}, False)])
def test_task_output_may_be_repeated_while_it_waits(arguments: dict[str, object], waits: bool) -> None:
    args = TaskOutputInput.model_validate({"task_id": "0a1b2c3d", **arguments})

    assert TaskOutputTool(BackgroundTasks()).may_be_repeated(args) is waits
