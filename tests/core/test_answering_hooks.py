"""A hook that answers in the user's place what another one asks, and what it can not answer."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio import Lock
from hypothesis import given
from hypothesis import strategies as st

from panpan.core.effects import UNKNOWN
from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool_call import Permission, permission_for
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionAnswer, PermissionQuestion, Reason
from tests.fakes.context import context_in
from tests.fakes.tools import SleepInput, changing

OPENED = Path("/opened")
ASK = Ask(Reason("it writes", "not-allowed"), approved_paths=frozenset({OPENED}))
YES = Allow(Reason("the release script may write notes"))
NO = Deny(Reason("notes are frozen"))


class Asks(Hook):
    """Decides what it is told."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    async def before_tool(self, call: ToolCall) -> Decision:
        return self._decision


class Answers(Hook):
    """Answers what it is told, and keeps what it was asked."""

    def __init__(self, answer: Allow | Deny | None) -> None:
        self._answer = answer
        self.asked: list[PermissionQuestion] = []

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        self.asked.append(question)
        return self._answer


async def decided(hooks: Sequence[Hook]) -> tuple[Permission, int]:
    """Return the permission, and how often the user, who always says yes, was asked."""
    asked: list[PermissionQuestion] = []

    async def user(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(is_allowed=True)

    call = ToolCall("1", changing(), SleepInput(), {}, context_in(Path()), UNKNOWN)
    return await permission_for(call, hooks, user, Lock()), len(asked)


async def test_hook_yes_opens_what_the_users_yes_would() -> None:
    answers = Answers(YES)
    permission, times_asked = await decided([answers, Asks(ASK)])

    assert (permission.is_allowed, permission.approved_paths, times_asked) == (True, {OPENED}, 0)
    assert permission.reasons == (ASK.reason, YES.reason)
    assert [question.reason for question in answers.asked] == ["it writes"]


async def test_hook_no_reaches_the_model_with_its_reason() -> None:
    permission, times_asked = await decided([Asks(ASK), Answers(NO)])

    assert (permission.is_allowed, times_asked) == (False, 0)
    assert permission.text_for_model == "Change was not run: notes are frozen"
    assert permission.reasons == (ASK.reason, NO.reason)


async def test_hook_without_an_answer_leaves_the_question_to_the_user() -> None:
    _, times_asked = await decided([Answers(None), Asks(ASK)])

    assert times_asked == 1


async def test_protected_question_is_never_answered_by_a_hook() -> None:
    answers = Answers(YES)
    _, times_asked = await decided([Asks(ASK), Asks(Ask(Reason("git's own"), is_protected=True)), answers])

    assert (times_asked, answers.asked) == (1, [])


@pytest.mark.parametrize("decision", [Allow(Reason("it may")), Deny(Reason("it must not"))])
async def test_decision_without_a_question_is_not_put_to_hooks(decision: Decision) -> None:
    answers = Answers(NO if isinstance(decision, Allow) else YES)
    permission, times_asked = await decided([answers, Asks(decision)])

    assert permission.is_allowed is isinstance(decision, Allow)
    assert (times_asked, answers.asked) == (0, [])


@given(st.lists(st.sampled_from([YES, NO, None]), max_size=4))
def test_hook_no_wins_in_any_order(answers: list[Allow | Deny | None]) -> None:
    async def check() -> None:
        permission, times_asked = await decided([Asks(ASK), *map(Answers, answers)])

        assert permission.is_allowed is (NO not in answers)
        assert times_asked == (0 if YES in answers or NO in answers else 1)

    anyio.run(check)


async def test_hook_yes_does_not_count_after_a_later_denial() -> None:
    class Denies(Hook):
        async def recheck(self, call: ToolCall) -> Deny | None:
            return Deny(Reason("plan mode is on", "mode"))

    permission, times_asked = await decided([Asks(ASK), Answers(YES), Denies()])

    assert (permission.is_allowed, times_asked) == (False, 0)
    assert "plan mode is on" in permission.text_for_model
