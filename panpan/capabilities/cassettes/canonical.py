"""Requests in one form: what a model is sent, without what differs from run to run and is not sent.

Two requests with the same canonical form are the same bytes on every wire. Ids of messages, times and prices are no
part of it; ids of calls are, since they are sent.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from panpan.types.llm import ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage


def canonical_message(message: Message) -> dict[str, Any]:
    """Return what is sent of a message."""
    match message:
        case UserMessage(content=content):
            return {"role": "user", "content": _dumped(content)}
        case SystemReminder(text=text):
            return {"role": "reminder", "text": text}
        case AssistantMessage(content=content):
            return {"role": "assistant", "content": _dumped(content)}
        case ToolResultMessage(result=result):
            body = {"role": "tool_result", "tool_use_id": result.tool_use_id, "is_error": result.is_error}
            return {**body, "content": _dumped(result.content)}


def canonical_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return what is sent of a tool."""
    return {"name": tool.name, "description": tool.description, "input_schema": plain(tool.input_schema)}


def canonical_request(request: ModelRequest) -> dict[str, Any]:
    """Return a request in its one form."""
    return {
        "system": request.system,
        "tools": [canonical_tool(tool) for tool in request.tools],
        "messages": [canonical_message(message) for message in request.messages],
    }


def outline(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was done in canonical messages, whatever was said: each call, and whether it failed."""
    rows: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        for block in message.get("content", ()) if message["role"] == "assistant" else ():
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
                rows.append({"calls": block["name"], "input": block["input"]})
        if message["role"] == "tool_result":
            rows.append({"answers": names.get(message["tool_use_id"], ""), "is_error": message["is_error"]})
    return rows


def plain(value: Any) -> Any:
    """Return JSON as reading it from a file gives it: mappings as dicts, tuples as lists."""
    return json.loads(json.dumps(value, ensure_ascii=False))


def digest(value: Any) -> str:
    """Return the SHA-256 of JSON in its one spelling."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def transcript_hash(messages: Iterable[Message]) -> str:
    """Return the hash of a conversation: the same for the same messages, on whatever day and machine."""
    return digest([canonical_message(message) for message in messages])


def _dumped(blocks: Iterable[Any]) -> list[Any]:
    return [block.model_dump(mode="json", exclude_none=True) for block in blocks]
