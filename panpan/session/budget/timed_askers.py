"""While the user is asked, the clock of the budgets stands."""

from collections.abc import Sequence

from panpan.session.budget.turn_clock import TurnClock
from panpan.session.interceptor import Askers
from panpan.types.asking import PlanAnswer, PlanAsker, PlanProposal, UserAnswer, UserAsker, UserQuestion
from panpan.types.permission import Asker, PermissionAnswer, PermissionQuestion


def timed_askers(askers: Askers, clock: TurnClock) -> Askers:
    """Return askers that let `clock` stand until the user has answered."""
    return Askers(
        None if askers.permission is None else _permission(askers.permission, clock),
        None if askers.user is None else _user(askers.user, clock),
        None if askers.plan is None else _plan(askers.plan, clock),
    )


def _permission(ask: Asker, clock: TurnClock) -> Asker:
    async def timed(question: PermissionQuestion) -> PermissionAnswer:
        with clock.standing():
            return await ask(question)

    return timed


def _user(ask: UserAsker, clock: TurnClock) -> UserAsker:
    async def timed(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        with clock.standing():
            return await ask(questions)

    return timed


def _plan(ask: PlanAsker, clock: TurnClock) -> PlanAsker:
    async def timed(proposal: PlanProposal) -> PlanAnswer:
        with clock.standing():
            return await ask(proposal)

    return timed
