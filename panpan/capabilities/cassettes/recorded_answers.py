"""What somebody was asked and said: written down while a session is recorded, and said again when it is played."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from panpan.session.tap import Askers
from panpan.types.asking import UserAnswer, UserAsker, UserQuestion
from panpan.types.permission import Asker, PermissionAnswer, PermissionQuestion, is_permission_mode
from panpan.types.plan import PlanAnswer, PlanApproved, PlanAsker, PlanEdited, PlanProposal, PlanRejected

Note: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Writes an answer down."""


def recording_askers(askers: Askers, note: Note) -> Askers:
    """Return the same askers, whose answers are written down."""
    permission, user, plan = askers.permission, askers.user, askers.plan
    return Askers(
        None if permission is None else _recording_permission(permission, note),
        None if user is None else _recording_user(user, note),
        None if plan is None else _recording_plan(plan, note),
    )


def _recording_permission(asker: Asker, note: Note) -> Asker:
    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        answer = await asker(question)
        asked = {"toolUseId": question.tool_use_id, "tool": question.tool_name, "title": question.title}
        note({"asked": "permission", **asked, "reason": question.on_one_line, "answer": asdict(answer)})
        return answer

    return ask


def _recording_user(asker: UserAsker, note: Note) -> UserAsker:
    async def ask(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        answers = await asker(questions)
        said = None if answers is None else [{"chosen": list(one.chosen), "text": one.text} for one in answers]
        note({"asked": "user", "questions": [question.question for question in questions], "answer": said})
        return answers

    return ask


def _recording_plan(asker: PlanAsker, note: Note) -> PlanAsker:
    async def ask(proposal: PlanProposal) -> PlanAnswer:
        answer = await asker(proposal)
        note({"asked": "plan", "plan": proposal.text, "answer": {"kind": type(answer).__name__, **asdict(answer)}})
        return answer

    return ask


def is_answer(line: Mapping[str, Any]) -> bool:
    """Return whether a line says what somebody was asked and answered."""
    match line:
        case {"asked": "permission", "toolUseId": str(), "answer": {"is_allowed": bool()}}:
            return True
        case {"asked": "user", "answer": list(answers)}:
            return all(isinstance(one, dict) and isinstance(one.get("chosen"), list) for one in answers)
        case {"asked": "user", "answer": None} | {"asked": "plan", "answer": dict()}:
            return True
        case _:
            return False


def user_answers(said: Any) -> Sequence[UserAnswer] | None:
    """Return what a line says that the user answered; None where he did not want to."""
    if not isinstance(said, list):
        return None
    return [UserAnswer(tuple(map(str, one["chosen"])), str(one.get("text", ""))) for one in said]


def plan_answer(said: Any) -> PlanAnswer:
    """Return what a line says of a plan; no, where it cannot be told."""
    match said:
        case {"kind": "PlanApproved", "mode": str(mode)} if is_permission_mode(mode):
            return PlanApproved(mode)
        case {"kind": "PlanEdited", "text": str(text)}:
            return PlanEdited(text)
        case {"kind": "PlanRejected", "comments": str(comments)}:
            return PlanRejected(comments)
        case _:
            return PlanRejected()
