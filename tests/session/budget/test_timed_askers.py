"""While the user is asked, whatever it is, no time of a budget passes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from panpan.session.budget.budget import TurnClock
from panpan.session.frontend import Askers, timed_askers
from panpan.types.permission import (
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)


class User:
    """Answers after ten seconds."""

    now_s = 0.0

    def now(self) -> float:
        return self.now_s

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        self.now_s += 10
        return PermissionAnswer(is_allowed=True)

    async def user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        self.now_s += 10
        raise RuntimeError("the face is gone")

    async def plan(self, proposal: PlanProposal) -> PlanAnswer:
        self.now_s += 10
        return PlanRejected()


async def test_turn_clock_stands_until_the_answer() -> None:
    user = User()
    clock = TurnClock(user.now)
    askers = timed_askers(Askers(user.permission, user.user, user.plan), clock)
    assert askers.permission is not None
    assert askers.user is not None
    assert askers.plan is not None

    assert await askers.plan(PlanProposal("", Path("p"), ())) == PlanRejected()
    with pytest.raises(RuntimeError):
        await askers.user(())
    user.now_s += 1

    assert (user.now_s, clock.seconds) == (21, 1)


def test_timed_askers_leaves_absent_askers_absent() -> None:
    assert timed_askers(Askers(), TurnClock()) == Askers()
