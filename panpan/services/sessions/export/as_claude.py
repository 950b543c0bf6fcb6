"""A session as a transcript of Claude Code: JSON lines, for viewers and programs that read those.

What it has no place for, such as what panpan told the model, stands in records that viewers take for notes of the
program (`isMeta`).
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from panpan.services.sessions.export.told import compaction_told
from panpan.services.sessions.export.transcript import Transcript
from panpan.services.sessions.records import record_of
from panpan.types.compaction import Compaction
from panpan.types.messages import AssistantMessage, Message, SystemReminder

_OWN_STOP_REASONS = frozenset({"interrupted", "unknown"})


def claude_text(transcript: Transcript) -> str:
    """Return the whole file."""
    return "".join(f"{json.dumps(record, separators=(',', ':'))}\n" for record in _records(transcript))


def _records(transcript: Transcript) -> Iterator[Mapping[str, Any]]:
    if transcript.title:
        leaf = transcript.messages[-1].uuid if transcript.messages else None
        yield {"type": "summary", "summary": transcript.title, "leafUuid": leaf}
    parent = None
    at = transcript.exported_at
    for message in transcript.parts:
        at = _made_at(message.uuid) or at
        yield {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": transcript.cwd,
            "sessionId": transcript.session_id,
            "version": f"panpan {transcript.panpan_version}",
            "gitBranch": "",
            **_said(message),
            "uuid": message.uuid,
            "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        parent = message.uuid


def _said(message: Message | Compaction) -> Mapping[str, Any]:
    """Return the part of a record that holds the message."""
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
    said: dict[str, Any] = {name: record[name] for name in ("type", "message", "toolUseResult") if name in record}
    if isinstance(message, AssistantMessage):
        reason = None if message.stop_reason in _OWN_STOP_REASONS else message.stop_reason
        own = {"id": f"msg_{message.uuid.replace('-', '')}", "type": "message"}
        said["message"] = {**own, **said["message"], "stop_reason": reason, "stop_sequence": None}
    return said


def _made_at(uuid: str) -> datetime | None:
    """Return when an id was made; None where it does not tell, not being of version 7."""
    try:
        value = UUID(uuid)
        return datetime.fromtimestamp((value.int >> 80) / 1000, UTC) if value.version == 7 else None
    except (ValueError, OverflowError, OSError):  # also of a time that no calendar has
        return None
