"""Questions of a session, put to all clients that answer questions: the first answer counts, and the others are told.

The rule: a question that nobody can answer is refused at once, and one whose last client has left is refused then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import anyio

from panpan.errors import PanpanError
from panpan.hub.events import PermissionReply, Question, QuestionAsked, QuestionClosed
from panpan.hub.feed import Feed
from panpan.session.frontend import Askers
from panpan.types.permission import (
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanEdited,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)

Answer = PermissionAnswer | Sequence[UserAnswer] | PlanAnswer | None
"""Answer to a question of its kind; None if the user does not want to answer questions of the model."""


class _Open:
    def __init__(self, question: Question) -> None:
        self.question = question
        self.closed = anyio.Event()
        self.answer: Any = None
        self.client = ""


class Questions:
    """Open questions of one session.

    Args:
        feed: Tells the clients what is asked, and what is not asked any more.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._open: dict[int, _Open] = {}
        self._numbers = count(1)
        self._clients: list[str] = []
        """Clients that answer questions; one may be here several times."""
        self._tell: Callable[[], None] = lambda: None

    @property
    def askers(self) -> Askers:
        """Functions that ask, for opening the session."""
        return Askers(self._permission, self._user, self._plan)

    @property
    def open(self) -> Mapping[int, Question]:
        """Questions that wait for an answer, by id, oldest first."""
        return {number: one.question for number, one in self._open.items()}

    @property
    def asked_about(self) -> Sequence[str]:
        """Ids of the calls with an open permission question; may repeat, since each agent numbers its own."""
        return [one.tool_use_id for one in self.open.values() if isinstance(one, PermissionQuestion)]

    @property
    def clients(self) -> int:
        """Number of clients that answer questions."""
        return len(self._clients)

    def subscribe(self, tell: Callable[[], None]) -> None:
        """Call `tell` after a question was asked or closed."""
        self._tell = tell

    @contextmanager
    def answered_by(self, client: str) -> Iterator[None]:
        """Put questions to a client inside the block, those that are open already among them."""
        self._clients.append(client)
        try:
            yield
        finally:
            self._clients.remove(client)
            if not self._clients:
                for one in self._open.values():
                    one.closed.set()

    def answer(self, number: int, answer: Answer, client: str) -> bool:
        """Answer a question; return False if it is closed already, so that this answer does not count.

        Raises:
            PanpanError: The answer is of another kind than the question, or chooses what that does not offer.
        """
        one = self._open.get(number)
        if one is None or one.closed.is_set():
            return False
        if not _fits(one.question, answer):
            raise PanpanError(f"the answer does not fit question {number}; it may only choose what that offers")
        one.answer, one.client = answer, client
        one.closed.set()
        return True

    async def _permission(self, question: PermissionQuestion) -> PermissionAnswer:
        answer = await self._ask(question)
        return PermissionAnswer(is_allowed=False) if answer is None else answer

    async def _user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        answer: Sequence[UserAnswer] | None = await self._ask(questions)
        return answer

    async def _plan(self, proposal: PlanProposal) -> PlanAnswer:
        answer = await self._ask(proposal)
        return PlanRejected() if answer is None else answer

    async def _ask(self, question: Question) -> Any:
        if not self._clients:
            return None
        number, one = next(self._numbers), _Open(question)
        self._open[number] = one
        self._feed.publish(QuestionAsked(number, question))
        self._tell()
        try:
            await one.closed.wait()
        finally:
            del self._open[number]
            self._feed.publish(QuestionClosed(number, one.client, _reply_in(one.answer)))
            self._tell()
        return one.answer


def _reply_in(answer: Answer) -> PermissionReply:
    if not isinstance(answer, PermissionAnswer):
        return ""
    if not answer.is_allowed:
        return "reject"
    return "always" if answer.is_remembered else "once"


def _fits(question: Question, answer: Answer) -> bool:
    """Return True if an answer is of the question's kind, and chooses nothing that the question does not offer."""
    match question, answer:
        case PermissionQuestion(offer=offer), PermissionAnswer(opening=opening, changes_mode=changes_mode):
            is_offered = opening is None or opening in offer.openings
            are_its_own = all(reason in question.reasons for reason in answer.reasons)  # they are recorded
            return is_offered and are_its_own and (not changes_mode or offer.mode is not None)
        case PlanProposal(modes=modes), PlanApproved(mode=mode):
            return mode in modes
        case PlanProposal(), PlanEdited() | PlanRejected():
            return True
        case ((PermissionQuestion() | PlanProposal()), _):
            return False
        case _, None:
            return True
        case [*questions], [*answers]:
            return len(questions) == len(answers) and all(map(_is_choice, questions, answers))
        case _:
            return False


def _is_choice(question: UserQuestion, answer: object) -> bool:
    if not isinstance(answer, UserAnswer) or (len(answer.chosen) > 1 and not question.allows_several):
        return False
    return set(answer.chosen) <= {choice.label for choice in question.choices}
