"""The model asks the user: what it may ask, and what it is told of the answer."""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from panpan.capabilities.questions.capability import AskUserInput, AskUserQuestionTool
from panpan.core.tool_executor import ToolExecutor
from panpan.errors import ToolError
from panpan.permissions.gate import PermissionGate
from panpan.types.content import ToolUseBlock, text
from panpan.types.events import Output, ToolFinished
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Choice, UserAnswer, UserAsker, UserQuestion
from tests.fakes.askers import no
from tests.fakes.context import context_in

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "options": [{"label": "SQLite", "description": "no server"}, {"label": "Postgres", "description": "more writers"}],
    "multiSelect": False,
}
CHECKS = {
    "question": "Which checks?",
    "header": "Checks",
    "options": [{"label": "ruff"}, {"label": "mypy"}, {"label": "pytest"}],
    "multiSelect": True,
}


class ScriptedUser:
    """Gives the same answers whatever is asked, and keeps the questions."""

    def __init__(self, *answers: UserAnswer, declines: bool = False) -> None:
        self.asked: list[Sequence[UserQuestion]] = []
        self._answers = None if declines else answers

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        self.asked.append(questions)
        return self._answers


class AbsentUser:
    """Never answers, and counts the questions that wait."""

    def __init__(self) -> None:
        self.open = 0
        self.is_asked = anyio.Event()

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        self.open += 1
        self.is_asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.open -= 1


async def call(ask: UserAsker | None, root: Path, *questions: dict[str, Any]) -> Output:
    tool = AskUserQuestionTool(ask)
    args = tool.input_model.model_validate({"questions": questions})
    async with aclosing(tool.run(args, context_in(root))) as yields:
        (output,) = [item async for item in yields]
    assert isinstance(output, Output)
    return output


async def test_user_is_asked_the_models_questions(tmp_path: Path) -> None:
    user = ScriptedUser(UserAnswer(("SQLite",)), UserAnswer(("ruff",)))

    await call(user, tmp_path, DATABASE, CHECKS)

    (first, second) = user.asked[0]
    assert first == UserQuestion(
        "Database", "Which database?", (Choice("SQLite", "no server"), Choice("Postgres", "more writers"))
    )
    assert second.allows_several
    assert [choice.label for choice in second.choices] == ["ruff", "mypy", "pytest"]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (UserAnswer(("ruff",)), "Which checks? ruff"),
        (UserAnswer(("ruff", "pytest")), "Which checks? ruff, pytest"),
        (UserAnswer(text="none, really"), 'Which checks? "none, really"'),
        (UserAnswer(("mypy",), "but not strict"), 'Which checks? mypy, "but not strict"'),
        (UserAnswer(text="one\n\ntwo"), 'Which checks? "one two"'),
        (UserAnswer(), "Which checks? (none of them)"),
    ],
)
async def test_each_answer_is_one_line(tmp_path: Path, answer: UserAnswer, line: str) -> None:
    output = await call(ScriptedUser(UserAnswer(("Postgres",)), answer), tmp_path, DATABASE, CHECKS)

    assert output.text == f"Which database? Postgres\n{line}"
    assert not output.is_error


async def test_display_shows_the_answers_by_their_headers(tmp_path: Path) -> None:
    user = ScriptedUser(UserAnswer(("Postgres",)), UserAnswer(("ruff", "mypy")))

    output = await call(user, tmp_path, DATABASE, CHECKS)

    assert output.display == text("Database: Postgres\nChecks: ruff, mypy", "dim")


async def test_declining_asks_the_model_not_to_repeat(tmp_path: Path) -> None:
    output = await call(ScriptedUser(declines=True), tmp_path, DATABASE)

    assert "did not want to answer" in output.text
    assert "Do not ask this again" in output.text


async def test_missing_user_leaves_the_decision_to_the_model(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"nobody is there to answer: decide yourself .* what you assumed"):
        await call(None, tmp_path, DATABASE)


def asking(**changes: Any) -> dict[str, Any]:
    return {"questions": [{**DATABASE, **changes}]}


def labelled(*labels: str) -> list[dict[str, str]]:
    return [{"label": label} for label in labels]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"questions": []}, "questions"),
        ({"questions": [DATABASE] * 5}, "questions"),
        (asking(options=labelled("one")), "options"),
        (asking(options=labelled("1", "2", "3", "4", "5")), "options"),
        (asking(options=labelled("same", "other", "same ")), "same label"),
        (asking(options=labelled("one", "  ")), "label"),
        (asking(question=" \n"), "question"),
        (asking(header=""), "header"),
        (asking(header="What this question is all about"), "header"),
        (asking(unknown=1), "unknown"),
    ],
)
def test_wrong_questions_are_refused_with_their_place(arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError, match=place):
        AskUserInput.model_validate(arguments)


def test_argument_names_are_those_of_other_agents() -> None:
    schema = AskUserQuestionTool(None).definition.input_schema
    question = schema["properties"]["questions"]["items"]

    assert set(question["properties"]) == {"question", "header", "options", "multiSelect"}
    assert set(question["required"]) == {"question", "header", "options"}
    assert set(question["properties"]["options"]["items"]["properties"]) == {"label", "description"}
    assert (schema["properties"]["questions"]["minItems"], schema["properties"]["questions"]["maxItems"]) == (1, 4)


def test_title_is_one_harmless_line() -> None:
    tool = AskUserQuestionTool(None)

    assert tool.title(AskUserInput.model_validate({"questions": [DATABASE]})) == "Which database?"
    assert tool.title(AskUserInput.model_validate({"questions": [DATABASE, CHECKS]})) == "Which database? (and 1 more)"
    assert tool.title(AskUserInput.model_validate(asking(question="a\nb\x1b]0;x\x07"))).isprintable()


Main = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    """Runs a test's main on each event loop; a plain function, since the async runner knows asyncio only."""
    return lambda main: anyio.run(main, backend=request.param)


def use(id_: str, question: dict[str, Any] = DATABASE) -> ToolUseBlock:
    return ToolUseBlock(id=id_, name="AskUserQuestion", input={"questions": [question]})


def test_interrupt_withdraws_the_questions(run: Callable[[Main], None], tmp_path: Path) -> None:
    async def main() -> None:
        user = AbsentUser()
        tool = AskUserQuestionTool(user)
        executor = ToolExecutor({tool.name: tool}, context_in(tmp_path), ask=no())
        async with executor, anyio.create_task_group() as turn:

            async def consume() -> None:
                async with aclosing(executor.run([use("1")])) as events:
                    async for _ in events:
                        pass

            turn.start_soon(consume)
            await user.is_asked.wait()
            assert user.open == 1
            turn.cancel_scope.cancel()
        assert user.open == 0

    run(main)


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
def test_ask_user_runs_without_permission_in_every_mode(run: Callable[[Main], None], tmp_path: Path, mode: Any) -> None:
    async def main() -> None:
        tool = AskUserQuestionTool(ScriptedUser(UserAnswer(("SQLite",))))
        asker = no()
        executor = ToolExecutor({tool.name: tool}, context_in(tmp_path), (PermissionGate(mode=mode),), ask=asker)
        async with executor, aclosing(executor.run([use("1")])) as events:
            seen = [event async for event in events]

        assert asker.questions == []
        assert [event.result.text for event in seen if isinstance(event, ToolResultMessage)] == [
            "Which database? SQLite"
        ]
        assert [event.is_error for event in seen if isinstance(event, ToolFinished)] == [False]

    run(main)


def test_parallel_calls_reach_the_face_together(run: Callable[[Main], None], tmp_path: Path) -> None:
    async def main() -> None:
        waiting = 0
        both_wait = anyio.Event()

        async def ask(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
            nonlocal waiting
            waiting += 1
            if waiting == 2:
                both_wait.set()
            await both_wait.wait()
            return [UserAnswer(("SQLite",))]

        tool = AskUserQuestionTool(ask)
        executor = ToolExecutor({tool.name: tool}, context_in(tmp_path), ask=no())
        async with executor, aclosing(executor.run([use("1"), use("2", CHECKS)])) as events:
            results = [event.tool_use_id async for event in events if isinstance(event, ToolResultMessage)]

        assert results == ["1", "2"]

    run(main)
