"""Records: the lines of a session's log, and the messages that they hold.

A record carries `uuid`, `parentUuid`, `sessionId`, `timestamp`, `type`, `message`, `cwd`, `gitBranch`, the `version` of
panpan and a `formatVersion`. Names and types are those of Claude Code's transcripts, so that its viewers read ours
(tried: ccusage 17 and 20, claude-code-log 1.7). A record of a type that
this version does not know is kept as it is and left out of the conversation.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from pydantic import ValidationError

from panpan.types.messages import (
    AssistantMessage,
    Message,
    ReminderPriority,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)

FORMAT_VERSION = 1
"""Raised when a reader of the old format could misread the new one."""


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return the record as one line. Half surrogates, which UTF-8 cannot hold, are written as escapes."""
    try:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def timestamp() -> str:
    """Return the time now as ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_version(record: Mapping[str, Any]) -> int:
    """Return the format version of a record, 0 if panpan did not write it; older logs have it in `version`."""
    for name in ("formatVersion", "version"):
        if type(version := record.get(name)) is int:
            return version
    return 0


def viewer_fields(agent_id: str = "") -> dict[str, Any]:
    """Return fields that viewers of transcripts require of each record, and panpan itself does not read."""
    fields = {"userType": "external", "isSidechain": bool(agent_id)}
    return {**fields, "agentId": agent_id} if agent_id else fields


def record_of(message: Message) -> dict[str, Any]:
    """Return what the record of `message` says; the log adds who, when and where."""
    match message:
        case UserMessage():
            return _record("user", message, {"role": "user", "content": _dumped(message.content)})
        case ToolResultMessage():
            record = _record("user", message, {"role": "user", "content": _dumped((message.result,))})
            if message.display is not None:
                record["toolUseResult"] = message.display.model_dump(mode="json")
            return record
        case SystemReminder():
            return _record("system", message) | {
                "subtype": "system_reminder",
                "content": message.text,
                "cause": message.cause,
                **({"priority": message.priority} if message.priority != "must" else {}),
            }
        case AssistantMessage():
            body = {
                "id": f"msg_{message.uuid.replace('-', '')}",
                "type": "message",
                "role": "assistant",
                "model": message.model,
                "content": _dumped(message.content),
                "stop_reason": message.stop_reason,
                "usage": message.usage.model_dump(mode="json"),
            }
            return _record("assistant", message, body) | {
                **({} if message.cost_usd is None else {"costUSD": message.cost_usd}),
                "durationMs": round(message.duration_s * 1000),
                **({"notesStarts": True} if message.tool_uses else {}),  # see `CallStartedRecord`
            }


def message_of(record: Mapping[str, Any]) -> Message | None:
    """Return the message that a record holds, or None if it holds none that this version can read."""
    try:
        match record.get("type"), record.get("subtype"):
            case "assistant", _:
                return _assistant_message(record)
            case "user", _:
                return _user_message(record)
            case "system", "system_reminder":
                return _reminder(record)
            case _:
                return None
    except (KeyError, TypeError, IndexError, AttributeError, ArithmeticError, ValidationError):
        return None


def _reminder(record: Mapping[str, Any]) -> SystemReminder:
    priority = record.get("priority")
    return SystemReminder(
        uuid=record["uuid"],
        text=record["content"],
        cause=record.get("cause", ""),
        priority=priority if priority in get_args(ReminderPriority) else "must",
    )


def _record(type_: str, message: Message, body: dict[str, Any] | None = None) -> dict[str, Any]:
    record: dict[str, Any] = {"type": type_, "uuid": message.uuid}
    if body is not None:
        record["message"] = body
    return record


def _dumped(blocks: tuple[Any, ...]) -> list[Any]:
    return [block.model_dump(mode="json", exclude_none=True) for block in blocks]


def _assistant_message(record: Mapping[str, Any]) -> AssistantMessage:
    body = record["message"]
    return AssistantMessage.model_validate(
        {
            "uuid": record["uuid"],
            "content": body["content"],
            "model": body["model"],
            "stop_reason": body["stop_reason"],
            "usage": body["usage"],
            "cost_usd": _amount(record.get("costUSD")),
            "duration_s": (_amount(record.get("durationMs")) or 0) / 1000,
        }
    )


def _amount(number: Any) -> float | None:
    is_amount = isinstance(number, int | float) and math.isfinite(number) and number >= 0
    return number if is_amount else None


def _user_message(record: Mapping[str, Any]) -> UserMessage | ToolResultMessage:
    content = record["message"]["content"]
    if content[0]["type"] == "tool_result":
        return ToolResultMessage.model_validate(
            {"uuid": record["uuid"], "result": content[0], "display": record.get("toolUseResult")}
        )
    return UserMessage.model_validate({"uuid": record["uuid"], "content": content})
