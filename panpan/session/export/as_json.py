"""A session as JSON Lines in the log's records, or as a transcript of Claude Code, for programs."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from panpan.session.budget.spending import made_at
from panpan.session.export.transcript import Transcript, compaction_told
from panpan.session.log.record_kinds import CompactionRecord
from panpan.session.log.records import record_of, viewer_fields
from panpan.types.messages import AssistantMessage, Compaction, Message, SystemReminder, ToolResultMessage

FORMAT = "panpan-session"
FORMAT_VERSION = 1

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would drive a terminal, reorder what is read or cannot be encoded; JSON may write any character as an escape."""


def json_text(transcript: Transcript) -> str:
    """Return the whole file."""
    exported = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "panpanVersion": transcript.panpan_version,
        "exportedAt": transcript.exported_at.isoformat(timespec="seconds"),
        "sessionId": transcript.session_id,
        "title": transcript.title,
        "model": transcript.model,
        "cwd": transcript.cwd,
        "messages": [
            CompactionRecord.of(part).as_json() if isinstance(part, Compaction) else record_of(part)
            for part in transcript.parts
        ],
    }
    text = json.dumps(exported, ensure_ascii=False, indent=2)
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


_NAMES = ("type", "message", "toolUseResult", "costUSD")
_OWN_STOP_REASONS = frozenset({"interrupted", "unknown"})


def claude_text(transcript: Transcript) -> str:
    """Return the whole file."""
    return "".join(f"{json.dumps(record, separators=(',', ':'))}\n" for record in _records(transcript))


def _records(transcript: Transcript) -> Iterator[Mapping[str, Any]]:
    agent_by_call = {call: subagent.agent_id for subagent in transcript.subagents for call in subagent.begun_by}
    if transcript.title and not transcript.agent_id:
        leaf = transcript.messages[-1].uuid if transcript.messages else None
        yield {"type": "summary", "summary": transcript.title, "leafUuid": leaf}
    parent = None
    at = transcript.exported_at
    for message in transcript.parts:
        at = _made_at(message.uuid) or at
        yield {
            "parentUuid": parent,
            **viewer_fields(transcript.agent_id),
            "cwd": transcript.cwd,
            "sessionId": transcript.session_id,
            "version": transcript.panpan_version,
            "gitBranch": transcript.git_branch,
            **_said(message, agent_by_call),
            "uuid": message.uuid,
            "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        parent = message.uuid


def _said(message: Message | Compaction, agent_by_call: Mapping[str, str]) -> Mapping[str, Any]:
    if isinstance(message, Compaction):
        trigger = "manual" if message.trigger == "manual" else "auto"
        metadata = {"trigger": trigger, "preTokens": message.tokens_before}
        return {
            "type": "system",
            "subtype": "compact_boundary",
            "content": compaction_told(message)[0],
            "compactMetadata": metadata,
            "isMeta": False,
        }
    if isinstance(message, SystemReminder):
        body = {"role": "user", "content": [{"type": "text", "text": message.tagged_text}]}
        return {"type": "user", "message": body, "isMeta": True}
    record = record_of(message)
    said: dict[str, Any] = {name: record[name] for name in _NAMES if name in record}
    if isinstance(message, ToolResultMessage) and (agent_id := agent_by_call.get(message.result.tool_use_id)):
        said["toolUseResult"] = {**said.get("toolUseResult", {}), "agentId": agent_id}
    if isinstance(message, AssistantMessage):
        reason = None if message.stop_reason in _OWN_STOP_REASONS else message.stop_reason
        said["message"] = {**said["message"], "stop_reason": reason, "stop_sequence": None}
    return said


def _made_at(uuid: str) -> datetime | None:
    try:
        return None if (at := made_at(uuid)) is None else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return None
