"""Operations on the questions of a session: which are open, the answers that they offer, and answering them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from panpan.hub.events import Question
from panpan.hub.hub import Hub
from panpan.hub.operations.table import Caller, NoParams, NotFoundError, Operation, Params
from panpan.hub.permission_answers import answers_to, why_it_matters
from panpan.hub.wire import ANSWER_KINDS, answer_from_json
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionAnswer, PermissionQuestion, PlanProposal, UserQuestion


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for an answer."""

    id: int
    kind: Literal["permission", "plan", "user"]
    question: PermissionQuestion | PlanProposal | Sequence[UserQuestion]

    @classmethod
    def of(cls, number: int, question: Question) -> "OpenQuestion":
        match question:
            case PermissionQuestion():
                return cls(number, "permission", question)
            case PlanProposal():
                return cls(number, "plan", question)
            case _:
                return cls(number, "user", question)


def open_questions(hub: Hub) -> Sequence[OpenQuestion]:
    """Return the questions that wait for an answer, oldest first."""
    return [OpenQuestion.of(*one) for one in hub.questions.open.items()]


async def _questions(hub: Hub, caller: Caller, params: NoParams) -> Sequence[OpenQuestion]:
    """Return the questions that wait for an answer."""
    return open_questions(hub)


_ANSWERS_IN_WORDS = (
    'permission: {"is_allowed": BOOLEAN}, or an answer that questions.answers returns. approved: {"mode": MODE}. '
    'edited: {"text": PLAN}. rejected: {"comments": WORDS}. user: a list of {"chosen": [LABEL], "text": WORDS}, '
    "one for each question; null declines."
)


class AnswerParams(Params):
    """An answer."""

    id: int
    """Number of the question."""
    answer: Mapping[str, Any] = Field(
        json_schema_extra={
            "required": ["kind", "answer"],
            "properties": {"kind": {"enum": list(ANSWER_KINDS)}, "answer": {"description": _ANSWERS_IN_WORDS}},
        }
    )
    """The answer with its `kind`: permission, approved, edited, rejected or user."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Outcome of an answer."""

    counts: bool
    """False if the question was closed before, such as by the answer of another client."""


async def _answer(hub: Hub, caller: Caller, params: AnswerParams) -> Answered:
    """Answer a question; the first answer counts."""
    return Answered(hub.questions.answer(params.id, answer_from_json(params.answer), caller.name))


class QuestionParams(Params):
    """A question."""

    id: int
    """Number of the question."""


@dataclass(frozen=True, slots=True)
class OfferedAnswer:
    """An answer that a question offers."""

    text: str
    """Its words."""
    answer: PermissionAnswer


@dataclass(frozen=True, slots=True)
class OfferedAnswers:
    """Answers to a question about a call."""

    why: str
    """Reasons for the question."""
    answers: Sequence[OfferedAnswer]


async def _offered(hub: Hub, caller: Caller, params: QuestionParams) -> OfferedAnswers:
    """Return the answers to a question about a call, and the reasons for it, in words."""
    question = hub.questions.open.get(params.id)
    if not isinstance(question, PermissionQuestion):
        raise NotFoundError("there is no such question about a call, or it is answered")
    return OfferedAnswers(
        why_it_matters(question), [OfferedAnswer(one.text, one.given) for one in answers_to(question)]
    )


QUESTION_OPERATIONS: Sequence[Operation[Hub]] = (
    Operation("questions.list", NoParams, Sequence[OpenQuestion], _questions),
    Operation("questions.answers", QuestionParams, OfferedAnswers, _offered),
    Operation("session.answer", AnswerParams, Answered, _answer, "write"),
)
"""Operations on the questions of a session."""
