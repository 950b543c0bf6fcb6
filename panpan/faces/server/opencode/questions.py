"""Questions of a session as the SDK has them, and its answers as ours.

A question about a call is a permission of the SDK, one of the model a question, and a plan a question with the modes
that may follow as its choices.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from panpan.faces.server.opencode.ids import question_id, wire_id
from panpan.faces.server.opencode.shapes import Json
from panpan.hub.events import Question
from panpan.hub.wire import WireError
from panpan.types.permission import PermissionQuestion, PlanProposal, UserQuestion

_NOT_YET = "Keep planning"


def permission_json(
    epoch: str, number: int, question: PermissionQuestion, session: str, *, reply: str, at_ms: int
) -> Json:
    """Return a question about a call, with the fields of both clients of the SDK.

    Args:
        epoch: Id of the numbering of questions.
        number: Its number.
        question: The question.
        session: The session, as the SDK knows it.
        reply: Our id of the reply that makes the call; empty if it is a subagent's.
        at_ms: The present time, since a question does not know when it was asked.
    """
    message = wire_id("msg", reply) if reply else ""
    rules = [rule for rule in (question.prefix_rule, question.rule) if rule]
    metadata: dict[str, Any] = {"reason": question.on_one_line, "input": question.input}
    if question.preview is not None:
        metadata["diff"] = "\n".join(file.diff for file in question.preview.files)
    return {
        "id": question_id("per", epoch, number),
        "sessionID": session,
        "permission": question.tool_name,
        "patterns": [question.title],
        "always": rules[-1:],
        "metadata": metadata,
        "tool": {"messageID": message, "callID": question.tool_use_id},
        "type": question.tool_name,
        "pattern": question.title,
        "messageID": message,
        "callID": question.tool_use_id,
        "title": question.head,
        "time": {"created": at_ms},
    }


def question_json(epoch: str, number: int, question: Question, session: str) -> Json:
    """Return questions of the model, or a plan."""
    asked: list[Json]
    match question:
        case PlanProposal(text=plan, modes=modes):
            options = [{"label": mode, "description": f"Go on in the mode {mode}"} for mode in modes]
            options.append({"label": _NOT_YET, "description": "Stay in plan mode; your own words say what to change"})
            asked = [{"header": "Plan", "question": plan, "options": options, "multiple": False, "custom": True}]
        case PermissionQuestion():
            raise TypeError("a question about a call is a permission")
        case _:
            asked = [_one(one) for one in question]
    return {"id": question_id("que", epoch, number), "sessionID": session, "questions": asked}


def _one(question: UserQuestion) -> Json:
    options = [{"label": choice.label, "description": choice.description} for choice in question.choices]
    head = {"header": question.header, "question": question.question, "options": options}
    return head | {"multiple": question.allows_several, "custom": True}


def permission_answer(question: Question, reply: str, words: str) -> Json:
    """Return our answer to a question about a call, as the operation takes it.

    Raises:
        WireError: There is no such reply, or the call cannot be remembered.
    """
    if not isinstance(question, PermissionQuestion):
        raise WireError("this is no question about a call; answer it as a question")
    if reply not in ("once", "always", "reject"):
        raise WireError("the reply is once, always or reject")
    if reply == "always" and question.rule is None:
        raise WireError("no rule can remember this call; reply once")
    answer = {"is_allowed": reply != "reject", "is_remembered": reply == "always", "feedback": words}
    return {"kind": "permission", "answer": answer}


def question_answer(question: Question, answers: Sequence[Sequence[str]] | None) -> Json:
    """Return our answer to questions of the model or to a plan, as the operation takes it.

    Args:
        question: The questions.
        answers: Chosen labels and own words for each; None to reject the questions.

    Raises:
        WireError: The answers do not fit.
    """
    match question:
        case PermissionQuestion():
            raise WireError("this is a question about a call; answer it as a permission")
        case PlanProposal(modes=modes):
            said = [text for one in answers or () for text in one]
            if (mode := next((text for text in said if text in modes), None)) is not None:
                return {"kind": "approved", "answer": {"mode": mode}}
            return {"kind": "rejected", "answer": {"comments": "\n".join(text for text in said if text != _NOT_YET)}}
        case _ if answers is None:
            return {"kind": "user", "answer": None}
        case _:
            if len(answers) != len(question):
                raise WireError(f"{len(question)} questions were asked; answer each, also with an empty list")
            return {"kind": "user", "answer": [_answer(*one) for one in zip(question, answers, strict=True)]}


def _answer(question: UserQuestion, said: Sequence[str]) -> Mapping[str, Any]:
    labels = {choice.label for choice in question.choices}
    words = "\n".join(text for text in said if text not in labels)
    return {"chosen": [text for text in said if text in labels], "text": words}
