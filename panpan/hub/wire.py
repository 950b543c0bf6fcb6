"""Requests, responses and events of a session as JSON lines.

A line has a `type`: `request` {id, method, params}, `response` {id, result or error} or `event` {id, event, data}, each
with a `timestamp` in milliseconds since 1970. The id of an event is its number, `event` the name of its type in snake
case, and `data` has the fields of that type.

The rule: what another process sends is checked here, and a line that does not fit is an error and nothing else.
"""

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import cache
from time import time
from typing import Any, TypeAlias, get_args

from pydantic import TypeAdapter, ValidationError

from panpan.errors import PanpanError
from panpan.hub.events import HubEvent, Question, QuestionAsked, TurnFailed
from panpan.hub.questions import Answer
from panpan.types.content import DocumentBlock, ImageBlock, TextBlock, UserContent
from panpan.types.events import SubagentEvent
from panpan.types.permission import (
    PermissionAnswer,
    PermissionQuestion,
    PlanApproved,
    PlanEdited,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)

MAX_LINE_BYTES = 32_000_000
"""Most bytes of one line; a prompt with pictures stays far below."""


_BEGINNINGS: Mapping[type, Mapping[str, bytes]] = {
    ImageBlock: {"image/png": b"\x89PNG\r\n", "image/jpeg": b"\xff\xd8", "image/gif": b"GIF8", "image/webp": b"RIFF"},
    DocumentBlock: {"application/pdf": b"%PDF"},
}
"""Kinds of content that models read, each with its first bytes."""

Line: TypeAlias = dict[str, Any]


class WireError(PanpanError):
    """A line or a value from the other end cannot be used."""


def name_of(event_type: type) -> str:
    """Return the name of a type of event on the wire."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type.__name__).lower()


_EVENT_TYPES: Mapping[str, type] = {name_of(one): one for one in get_args(HubEvent)}
_NAMES: Mapping[type, str] = {one: name for name, one in _EVENT_TYPES.items()}
_QUESTIONS: Mapping[str, Any] = {
    "permission": PermissionQuestion,
    "plan": PlanProposal,
    "user": Sequence[UserQuestion],
}
_ANSWERS: Mapping[str, Any] = {
    "permission": PermissionAnswer,
    "approved": PlanApproved,
    "edited": PlanEdited,
    "rejected": PlanRejected,
    "user": Sequence[UserAnswer] | None,
}
ANSWER_KINDS: Sequence[str] = tuple(_ANSWERS)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def as_json(kind: Any, value: object) -> Any:
    """Return a value of a type as JSON has it."""
    return _adapter(kind).dump_python(value, mode="json")


def from_json(kind: Any, value: object) -> Any:
    """Return a value of a type from JSON.

    Raises:
        WireError: It does not fit.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place, said = ".".join(map(str, first["loc"]))[:200], first["msg"]
        raise WireError(f"{place + ': ' if place else ''}{said[:1].lower()}{said[1:]}") from error


def event_as_json(event: HubEvent) -> Line:
    """Return an event as an object with its name and its data."""
    data: Line
    match event:
        case SubagentEvent():
            data = {"parent_tool_use_id": event.parent_tool_use_id, "agent_id": event.agent_id}
            data["event"] = event_as_json(event.event)
        case TurnFailed(error=error):
            data = {"error": str(error), "name": type(error).__name__, "exit_code": error.exit_code}
        case QuestionAsked(id=number, question=question):
            data = {"id": number, "question": question_as_json(question)}
        case _:
            data = as_json(type(event), event)
    return {"event": _NAMES[type(event)], "data": data}


def event_from_json(value: object) -> HubEvent:
    """Return the event of such an object; further keys of it do not matter.

    Raises:
        WireError: It is none.
    """
    match value:
        case {"event": str(name), "data": dict(data)} if name in _EVENT_TYPES:
            pass
        case _:
            raise WireError("there is no such event")
    event_type = _EVENT_TYPES[name]
    try:
        if event_type is SubagentEvent:
            inner: Any = event_from_json(data["event"])
            return SubagentEvent(str(data["parent_tool_use_id"]), str(data["agent_id"]), inner)
        if event_type is TurnFailed:
            return TurnFailed(PanpanError(str(data["error"])))
        if event_type is QuestionAsked:
            return QuestionAsked(int(data["id"]), question_from_json(data["question"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise WireError(f"an event {name} is not complete") from error
    event: HubEvent = from_json(event_type, data)
    return event


def question_as_json(question: Question) -> Line:
    """Return a question as an object with its kind."""
    kind = next((name for name in ("permission", "plan") if isinstance(question, _QUESTIONS[name])), "user")
    return {"kind": kind, "question": as_json(_QUESTIONS[kind], question)}


def question_from_json(value: object) -> Question:
    """Return the question of such an object.

    Raises:
        WireError: It is none.
    """
    if not isinstance(value, dict) or value.get("kind") not in _QUESTIONS:
        raise WireError("there is no such question")
    question: Question = from_json(_QUESTIONS[value["kind"]], value.get("question"))
    return question


def answer_as_json(answer: Answer) -> Line:
    """Return an answer as an object with its kind."""
    kinds = ("permission", "approved", "edited", "rejected")
    kind = next((name for name in kinds if isinstance(answer, _ANSWERS[name])), "user")
    return {"kind": kind, "answer": as_json(_ANSWERS[kind], answer)}


def answer_from_json(value: object) -> Answer:
    """Return the answer of such an object.

    Raises:
        WireError: It is none.
    """
    if not isinstance(value, dict) or value.get("kind") not in ANSWER_KINDS or "answer" not in value:
        raise WireError(f'an answer is {{"kind": KIND, "answer": …}} with a KIND of {", ".join(_ANSWERS)}')
    answer: Answer = from_json(_ANSWERS[value["kind"]], value.get("answer"))
    return answer


def require_usable(content: Sequence[UserContent]) -> None:
    """Refuse content that no model takes: once in the conversation, it would fail every later request.

    Raises:
        WireError: It is empty, or a picture or document is none of the known kinds.
    """
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in content):
        raise WireError("the prompt is empty")
    for block in content:
        if isinstance(block, TextBlock):
            continue
        source = block.source
        beginning = _BEGINNINGS[type(block)].get(source.media_type)
        try:
            is_usable = beginning is not None and b64decode(source.data, validate=True).startswith(beginning)
        except ValueError:
            is_usable = False
        if not is_usable:
            kinds = ", ".join(_BEGINNINGS[type(block)])
            raise WireError(f"the {block.type} cannot be used; send one of these kinds in Base64: {kinds}")


def too_long(max_bytes: int) -> WireError:
    """Return the error of a line with more than `max_bytes`."""
    return WireError(f"a line is longer than {max_bytes:,} bytes; send it in parts")


def line_of(**fields: object) -> bytes:
    """Return an object as one line, with the time."""
    whole = {**fields, "timestamp": round(time() * 1000)}
    return json.dumps(whole, separators=(",", ":")).encode() + b"\n"


def parse_line(line: bytes) -> Line:
    """Return the object of a line.

    Raises:
        WireError: The line holds none.
    """
    if len(line) > MAX_LINE_BYTES:
        raise too_long(MAX_LINE_BYTES)
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError("a line is not a JSON object") from error
    if not isinstance(value, dict):
        raise WireError("a line is not a JSON object")
    return value
