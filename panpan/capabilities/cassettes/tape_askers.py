"""Answers from a cassette, in the place of the person who was there when it was recorded.

The rule: a cassette is a file, and a file grants nothing that matters. With real tools, a call may run that ran in the
recording, within the workspace and the sandbox. What is protected, lies outside or would leave the sandbox stays
closed, whatever the cassette says.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from panpan.capabilities.cassettes.recorded_answers import plan_answer, user_answers
from panpan.capabilities.cassettes.recorded_session import RecordedSession
from panpan.session.tap import Askers
from panpan.types.asking import UserAnswer, UserQuestion
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from panpan.types.plan import PlanAnswer, PlanApproved, PlanProposal, PlanRejected

_CLOSED = ("protected", "outside", "sandbox", "rule", "unclear", "withheld", "doom-loop")
"""Kinds of questions that a cassette does not answer: those that ask for more than the workspace, or that the user's
own rules want to be asked."""


def tape_askers(recorded: RecordedSession) -> Askers:
    """Return who answers in a replay: somebody for each kind of question for which somebody was there."""
    asks = recorded.header.asks
    return Askers(
        _Permission(recorded),
        _User(recorded) if "user" in asks else None,
        _Plan(recorded) if "plan" in asks else None,
    )


class _Permission:
    """Implements `Asker`."""

    def __init__(self, recorded: RecordedSession) -> None:
        answers = {line["toolUseId"]: line["answer"] for line in _answers(recorded, "permission")}
        self._said_yes = {id_ for id_, answer in answers.items() if answer.get("is_allowed") is True}
        self._feedback = {id_: str(answer.get("feedback", "")) for id_, answer in answers.items()}
        self._ran = recorded.begun | self._said_yes

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        id_ = question.tool_use_id
        if question.is_protected or any(reason.kind in _CLOSED for reason in question.reasons):
            return PermissionAnswer(is_allowed=False, feedback="a cassette does not open this")
        return PermissionAnswer(is_allowed=id_ in self._ran, feedback=self._feedback.get(id_, ""))


class _User:
    """Implements `UserAsker`."""

    def __init__(self, recorded: RecordedSession) -> None:
        self._said = _answers(recorded, "user")

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        line = next(self._said, None)
        answers = None if line is None else user_answers(line["answer"])
        return answers if answers is not None and len(answers) == len(questions) else None


class _Plan:
    """Implements `PlanAsker`."""

    def __init__(self, recorded: RecordedSession) -> None:
        self._said = _answers(recorded, "plan")

    async def __call__(self, proposal: PlanProposal) -> PlanAnswer:
        line = next(self._said, None)
        answer = PlanRejected() if line is None else plan_answer(line["answer"])
        is_open = not isinstance(answer, PlanApproved) or answer.mode in ("default", "acceptEdits")
        return answer if is_open else PlanRejected()


def _answers(recorded: RecordedSession, asked: str) -> Iterator[Mapping[str, Any]]:
    return (line for line in recorded.answers if line["asked"] == asked)
