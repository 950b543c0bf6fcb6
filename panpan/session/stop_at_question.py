"""The stop of a run at the first question that only a person can answer.

The call that asked is refused, and no other call of the session begins. Each agent's turn ends after its round, so the
history is valid and the session can go on with the answer as its next message. Calls that run already finish.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NoReturn, TypeAlias

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import AnswerNeededError, ToolError
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage
from panpan.types.permission import (
    Deny,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanProposal,
    Reason,
    UserAnswer,
    UserQuestion,
    flags_for,
)

WhenAsked: TypeAlias = Literal["refuse", "stop"]
"""Fate of a run that needs an answer where nobody is there: the call is refused, or the run stops."""

_ENDS_HERE = "Nobody is there to answer now, so the run ends here. The answer comes with the user's next message"
_STOPS = Reason("the run stops at a question for the user", advice="make the call again when their answer is there")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that stopped a run."""

    kind: Literal["question", "permission", "plan"]
    text: str
    choices: tuple[str, ...] = ()
    """Answers that are offered."""
    allowed_with: tuple[str, ...] = ()
    """Words of a command line that allow the call."""


class StopAtQuestion:
    """Takes the questions of a session in a person's place, and keeps the first."""

    def __init__(self) -> None:
        self.asked: Asked | None = None

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        """Refuse a call for now."""
        self._keep(
            Asked(
                "permission",
                "\n".join(_lines_about(question)),
                allowed_with=tuple(shlex.split(flags_for(question.reasons) if question.reasons else "")),
            )
        )
        said = f"It needs the user's yes ({question.on_one_line}). {_ENDS_HERE}."
        return PermissionAnswer(is_allowed=False, feedback=said, is_persons=False)

    async def user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Leave questions of the model open.

        Raises:
            ToolError: Always.
        """
        labels = tuple(choice.label for choice in questions[0].choices) if len(questions) == 1 else ()
        self._keep(Asked("question", "\n".join(_lines_of(questions)), labels))
        self._leave_open()

    async def plan(self, proposal: PlanProposal) -> PlanAnswer:
        """Leave a plan without an answer; it is in its file.

        Raises:
            ToolError: Always.
        """
        mode = "acceptEdits" if "acceptEdits" in proposal.modes else proposal.modes[0]
        flags = ("--permission-mode", mode)
        self._keep(Asked("plan", proposal.text, tuple(proposal.modes), flags))
        self._leave_open()

    def _keep(self, asked: Asked) -> None:
        self.asked = self.asked or asked

    def _leave_open(self) -> NoReturn:
        raise ToolError(_ENDS_HERE[:1].lower() + _ENDS_HERE[1:])


class EndAtQuestion(Hook):
    """Ends the turns of one agent once a question of the session is open.

    Args:
        stop: The questions.
        go_on: Command that goes on with the session, without the flags; empty if nothing keeps the session.
        is_main: True for the agent whose turn the caller waits for.
    """

    def __init__(self, stop: StopAtQuestion, go_on: str, *, is_main: bool) -> None:
        self._stop = stop
        self._go_on = go_on
        self._is_main = is_main

    def denies_all(self) -> Deny | None:
        return None if self._stop.asked is None else Deny(_STOPS)

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._end_if_asked()  # by a subagent in the background, between two turns
        return ()

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        self._end_if_asked()
        return ()

    def _end_if_asked(self) -> None:
        """End the turn if there is a question; the main agent's end takes it to the caller.

        Raises:
            AnswerNeededError: There is one.
        """
        asked = self._stop.asked
        if asked is None:
            return
        if self._is_main:
            self._stop.asked = None
        raise AnswerNeededError(
            "\n".join(self._told(asked)),
            kind=asked.kind,
            question=asked.text,
            choices=asked.choices,
            allowed_with=asked.allowed_with,
        )

    def _told(self, asked: Asked) -> Iterator[str]:
        yield f"the run stopped at a {'plan' if asked.kind == 'plan' else 'question'} for you"
        yield asked.text
        if asked.choices:
            yield f"choices: {' | '.join(asked.choices)}"
        if self._go_on:
            flags = f" {shlex.join(asked.allowed_with)}" if asked.allowed_with else ""
            yield f"go on with: {self._go_on} -p 'YOUR ANSWER'{flags}"
        if asked.kind == "permission" and not asked.allowed_with:
            yield "no flag allows it: run panpan on a terminal and without -p, or answer with another way"


def _lines_about(question: PermissionQuestion) -> Iterator[str]:
    yield question.head if question.title in question.head else f"{question.head} {question.title}"
    yield question.on_one_line
    for file in question.preview.files if question.preview is not None else ():
        yield f"{file.path} (+{file.added} -{file.removed})"
    if question.agent:
        yield f"asked by the subagent {question.agent}"


def _lines_of(questions: Sequence[UserQuestion]) -> Iterator[str]:
    """Yield questions, and their choices where there are several questions."""
    for asked in questions:
        yield asked.question
        explained = [one for one in asked.choices if one.description or len(questions) > 1]
        yield from (f"- {one.label}: {one.description}" if one.description else f"- {one.label}" for one in explained)
