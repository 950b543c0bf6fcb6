"""Questions go to all clients that answer them; the first answer counts, and a question never waits for nobody."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.errors import PanpanError
from panpan.hub.events import QuestionAsked, QuestionClosed
from panpan.hub.feed import Feed, Reader
from panpan.hub.questions import Questions
from panpan.types.permission import (
    Choice,
    Opening,
    PermissionAnswer,
    PermissionQuestion,
    PlanApproved,
    PlanProposal,
    PlanRejected,
    Reason,
    UserAnswer,
    UserQuestion,
)

BASH = PermissionQuestion("call_1", "Bash", {"command": "make"}, "make", "it runs a command")
WHICH = UserQuestion("Which", "Which one?", (Choice("this"), Choice("that")))
PLAN = PlanProposal("Change it.", Path("/plan.md"), ("default",))
YES = PermissionAnswer(is_allowed=True)
NO = PermissionAnswer(is_allowed=False)


class Asked:
    """Questions with a reader of what clients are told, and the answers that came back."""

    def __init__(self) -> None:
        self.feed = Feed()
        self.questions = Questions(self.feed)
        self.reader = Reader(self.feed)
        self.answers: list[Any] = []

    async def ask(self, question: Any) -> None:
        askers = self.questions.askers
        assert askers.permission is not None
        assert askers.user is not None
        assert askers.plan is not None
        if isinstance(question, PermissionQuestion):
            self.answers.append(await askers.permission(question))
        elif isinstance(question, PlanProposal):
            self.answers.append(await askers.plan(question))
        else:
            self.answers.append(await askers.user(question))

    @property
    def told(self) -> list[Any]:
        return [one.event for one in self.reader.take_now()]


async def test_first_answer_counts_and_the_others_are_told() -> None:
    it = Asked()
    with it.questions.answered_by("a"), it.questions.answered_by("b"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.ask, BASH)
            await anyio.wait_all_tasks_blocked()
            assert it.told == [QuestionAsked(1, BASH)]
            assert it.questions.answer(1, YES, "b")
            assert not it.questions.answer(1, NO, "a")

    assert it.answers == [YES]
    assert it.told == [QuestionClosed(1, "b", "once")]
    assert not it.questions.answer(1, NO, "a"), "it is gone"
    assert not it.questions.answer(7, NO, "a"), "it never was there"


@pytest.mark.parametrize(("question", "answer"), [(BASH, NO), ([WHICH], None), (PLAN, PlanRejected())])
async def test_question_to_nobody_is_refused_at_once(question: Any, answer: Any) -> None:
    it = Asked()

    await it.ask(question)

    assert it.answers == [answer]
    assert it.told == []


@pytest.mark.parametrize(("question", "answer"), [(BASH, NO), ([WHICH], None), (PLAN, PlanRejected())])
async def test_question_is_refused_when_the_last_client_leaves(question: Any, answer: Any) -> None:
    it, first, second = Asked(), ExitStack(), ExitStack()
    first.enter_context(it.questions.answered_by("a"))
    second.enter_context(it.questions.answered_by("b"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.ask, question)
        await anyio.wait_all_tasks_blocked()
        first.close()
        await anyio.wait_all_tasks_blocked()
        assert it.answers == [], "somebody is still there"
        second.close()

    assert it.answers == [answer]
    assert it.told[-1] == QuestionClosed(1, "")


async def test_withdrawn_question_is_closed_by_nobody() -> None:
    it = Asked()
    with it.questions.answered_by("a"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.ask, BASH)
            await anyio.wait_all_tasks_blocked()
            assert it.questions.asked_about == ["call_1"]
            tasks.cancel_scope.cancel()

    assert it.told == [QuestionAsked(1, BASH), QuestionClosed(1, "")]
    assert (it.answers, dict(it.questions.open)) == ([], {})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (BASH, None),
        (BASH, PlanRejected()),
        (BASH, PermissionAnswer(is_allowed=True, opening=Opening("off"))),
        (BASH, PermissionAnswer(is_allowed=True, changes_mode=True)),
        (BASH, PermissionAnswer(is_allowed=False, reasons=(Reason("words that nobody said"),))),
        ([WHICH], []),
        ([WHICH], YES),
        ([WHICH], [UserAnswer(("another",))]),
        ([WHICH], [UserAnswer(("this", "that"))]),
        (PLAN, YES),
        (PLAN, None),
        (PLAN, PlanApproved("bypassPermissions")),
    ],
)
async def test_answer_that_does_not_fit_is_an_error(question: Any, answer: Any) -> None:
    it = Asked()
    right: Any = YES if question is BASH else PlanApproved("default") if question is PLAN else [UserAnswer(("this",))]
    with it.questions.answered_by("a"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.ask, question)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(PanpanError, match="does not fit question 1; it may only choose what that offers"):
                it.questions.answer(1, answer, "a")
            it.questions.answer(1, right, "a")

    assert it.answers == [right]
