"""Records: the lines of a session's log, and the messages that they hold.

A record carries `uuid`, `parentUuid`, `sessionId`, `timestamp`, `type`, `message`, `cwd`, `gitBranch`, the `version` of
panpan and a `formatVersion`. Names and types are those of Claude Code's transcripts, so that its viewers read ours
(tried: ccusage 17 and 20, claude-code-log 1.7). A record of a type that
this version does not know is kept as it is and left out of the conversation.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from pydantic import ValidationError

from panpan.session.prefix import SessionPrefix
from panpan.types.file_change import FileChange
from panpan.types.ids import new_id
from panpan.types.llm import Effort
from panpan.types.messages import (
    AssistantMessage,
    Message,
    ReminderPriority,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)
from panpan.types.permission import PermissionMode
from panpan.types.tool import IntendedChange

FORMAT_VERSION = 1
"""Raised when a reader of the old format could misread the new one."""

MAX_FILES_IN_RECORD = 200
"""Changed files that a record of a snapshot names; how many there were it says in any case."""


def encoded(record: Mapping[str, Any]) -> bytes:
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
    """Return what viewers of transcripts require of each record, and panpan itself does not read.

    Args:
        agent_id: The subagent that said it; empty: the session's own model or the user.
    """
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
                **({"notesStarts": True} if message.tool_uses else {}),  # see `call_started_record`
            }


def prefix_record(prefix: SessionPrefix, *, opens_session: bool, panpan_version: str) -> dict[str, Any]:
    """Return the record of what requests begin with, so that a resumed session sends the same.

    Args:
        prefix: The prefix, for models of one profile.
        opens_session: Whether it is the first record of the log.
        panpan_version: Of this panpan, for whoever reads the log.
    """
    return {
        "type": "system",
        "subtype": "session_start" if opens_session else "prefix",
        "uuid": new_id(),
        "panpanVersion": panpan_version,
        "profile": prefix.profile,
        "system": prefix.system,
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
            for tool in prefix.tools
        ],
    }


def opened_record(*, is_interactive: bool) -> dict[str, Any]:
    """Return the record of whether somebody has the session on a terminal from now on; without one, somebody has."""
    return {"type": "system", "subtype": "opened", "uuid": new_id(), "interactive": is_interactive}


def permission_mode_record(mode: PermissionMode) -> dict[str, Any]:
    """Return the record that the user chose a permission mode in this session."""
    return {"type": "system", "subtype": "permission_mode", "uuid": new_id(), "permissionMode": mode}


def plan_file_record(name: str, *, is_approved: bool) -> dict[str, Any]:
    """Return the record of the file that holds the session's newest plan, and whether the user has approved that.

    It says the name alone: which folder plans lie in is not for a log to say.
    """
    return {"type": "system", "subtype": "plan_file", "uuid": new_id(), "planFile": name, "isApproved": is_approved}


def model_record(model: str, effort: Effort | None) -> dict[str, Any]:
    """Return the record that the session talks to another model, or with another effort, from now on."""
    return {"type": "system", "subtype": "model", "uuid": new_id(), "model": model, "effort": effort}


def title_record(title: str, *, reply: AssistantMessage | None = None) -> dict[str, Any]:
    """Return the record of the session's title, in the form that other agents' viewers read.

    Args:
        title: On one line.
        reply: What a model sent for it, for what it cost; None: the user chose it.
    """
    record = {"type": "summary", "uuid": new_id(), "summary": title}
    return record if reply is None else {**record, "reply": record_of(reply)}


def call_started_record(
    tool_use_id: str, *, tool: str, digest: str, notes_changes: bool, process_mark: str
) -> dict[str, Any]:
    """Return the record that a call may change something from now on.

    Where the record of a reply has `notesStarts`, a call of it without this record has changed nothing.

    Args:
        tool_use_id: The call.
        tool: Name of what it calls.
        digest: Of its exact arguments.
        notes_changes: Whether it changes nothing before a record of the files that it changes.
        process_mark: By which the processes are found that it starts.
    """
    record = {"type": "system", "subtype": "call_started", "uuid": new_id(), "toolUseId": tool_use_id}
    return {**record, "tool": tool, "digest": digest, "notesChanges": notes_changes, "processMark": process_mark}


def file_changes_record(tool_use_id: str, changes: Sequence[IntendedChange]) -> dict[str, Any]:
    """Return the record of what a call is going to make of files, and of nothing else."""
    files = [{"path": str(one.path), "before": one.before, "after": one.after} for one in changes]
    return {
        "type": "system",
        "subtype": "file_changes",
        "uuid": new_id(),
        "toolUseId": tool_use_id,
        "files": files,
    }


def rewind_record(left: str | None) -> dict[str, Any]:
    """Return the record with which the session goes on from an earlier record, its parent.

    Args:
        left: The record that was the newest before.
    """
    return {"type": "system", "subtype": "rewind", "uuid": new_id(), "leftUuid": left}


def snapshot_record(
    cause: str, before: Mapping[str, str], after: Mapping[str, str] | None, *, turn: str, files: Sequence[FileChange]
) -> dict[str, Any]:
    """Return the record of the files before something that changes them, and after it.

    Args:
        cause: `turn`, `undo`, `redo` or `rewind`.
        before: Ids of snapshots, by folder.
        after: The same; None: it begins now.
        turn: `uuid` of the message that began the turn; empty for what is no turn.
        files: What became of each file.
    """
    record: dict[str, Any] = {"type": "system", "subtype": "snapshot", "uuid": new_id(), "cause": cause}
    record |= {"turnUuid": turn} if turn else {}
    record["before"] = dict(before)
    if after is not None:
        record |= {"after": dict(after), "files": [change.as_json() for change in files[:MAX_FILES_IN_RECORD]]}
        record["fileCount"] = len(files)
    return record


def message_of(record: Mapping[str, Any]) -> Message | None:
    """Return the message that a record holds, or None where it holds none that this version can read."""
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
    """Return a number that can be an amount of something; None for what cannot, such as infinity."""
    is_amount = isinstance(number, int | float) and math.isfinite(number) and number >= 0
    return number if is_amount else None


def _user_message(record: Mapping[str, Any]) -> UserMessage | ToolResultMessage:
    content = record["message"]["content"]
    if content[0]["type"] == "tool_result":
        return ToolResultMessage.model_validate(
            {"uuid": record["uuid"], "result": content[0], "display": record.get("toolUseResult")}
        )
    return UserMessage.model_validate({"uuid": record["uuid"], "content": content})
