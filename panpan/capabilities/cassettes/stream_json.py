"""The events of a model's stream as JSON, for recorded cassettes.

A delta is `["text", index, piece]`, so that a reply of ten thousand pieces stays readable and small; all other events
are objects. What is read back is equal to what was written.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from pydantic import TypeAdapter

from panpan.types.content import AssistantContent
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Waiting,
)
from panpan.types.messages import AssistantMessage, Usage

_block: TypeAdapter[AssistantContent] = TypeAdapter(AssistantContent)


def event_json(event: StreamEvent) -> Any:
    """Return an event as JSON."""
    match event:
        case TextDelta(index=index, text=text):
            return ["text", index, text]
        case ThinkingDelta(index=index, text=text):
            return ["thinking", index, text]
        case ToolInputDelta(index=index, json=text):
            return ["input", index, text]
        case Waiting(reason=reason):
            return {"event": "waiting", "reason": reason}
        case ReplyStarted(message_id=message_id, model=model, usage=usage):
            started = {"event": "reply_started", "message_id": message_id, "model": model}
            return {**started, "usage": usage.model_dump(mode="json")}
        case BlockStarted(index=index, kind=kind, tool_use_id=tool_use_id, tool_name=tool_name):
            call = {"tool_use_id": tool_use_id, "tool_name": tool_name} if kind == "tool_use" else {}
            return {"event": "block_started", "index": index, "kind": kind, **call}
        case BlockFinished(index=index, block=block):
            return {"event": "block_finished", "index": index, "block": block.model_dump(mode="json")}
        case AssistantMessage():
            return {"event": "message", "message": event.model_dump(mode="json")}
        case _:
            assert_never(event)


def event_of(value: Any) -> StreamEvent:
    """Return the event that JSON says.

    Raises:
        ValueError: It says none that this panpan knows.
    """
    match value:
        case ["text", int(index), str(text)]:
            return TextDelta(index, text)
        case ["thinking", int(index), str(text)]:
            return ThinkingDelta(index, text)
        case ["input", int(index), str(text)]:
            return ToolInputDelta(index, text)
        case {"event": "waiting", "reason": str(reason)}:
            return Waiting(reason)
        case {"event": "reply_started", "message_id": str(message_id), "model": str(model), "usage": usage}:
            return ReplyStarted(message_id, model, Usage.model_validate(usage))
        case {"event": "block_started", "index": int(index), "kind": kind} if kind in _KINDS:
            return BlockStarted(index, kind, value.get("tool_use_id", ""), value.get("tool_name", ""))
        case {"event": "block_finished", "index": int(index), "block": block}:
            return BlockFinished(index, _block.validate_python(block))
        case {"event": "message", "message": message}:
            return AssistantMessage.model_validate(message)
        case _:
            raise ValueError(f"{_named(value)} is no event of a model's stream")


_KINDS = ("text", "thinking", "redacted_thinking", "tool_use")


def _named(value: Any) -> str:
    return repr(value.get("event")) if isinstance(value, Mapping) else repr(value)[:40]
