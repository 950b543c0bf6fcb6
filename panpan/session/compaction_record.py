"""The record of a compaction: what stands for the beginning of the conversation from here on."""

from collections.abc import Mapping
from typing import Any

from panpan.session.records import message_of, record_of
from panpan.types.compaction import COMPACTION_TRIGGERS, Compaction, CompactionReport
from panpan.types.messages import AssistantMessage, SystemReminder

_COUNTS = ("kept", "pinned", "quoted", "summarised", "dropped", "outputs")


def compaction_record(compaction: Compaction) -> dict[str, Any]:
    """Return the record of a compaction. What it keeps is named by id, what it adds is written out."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": compaction.uuid,
        "content": "Conversation compacted",  # what other agents' viewers show
        "compactMetadata": _metadata(compaction),
        "upTo": compaction.up_to,
        "pinned": list(compaction.pinned),
        "added": [
            {"uuid": message.uuid, "content": message.text, "cause": message.cause} for message in compaction.added
        ],
        "keptFrom": compaction.kept_from,
        "notes": dict(compaction.notes),
        "reply": None if compaction.reply is None else record_of(compaction.reply),
    }


def _metadata(compaction: Compaction) -> dict[str, Any]:
    """Return what people want to know of a compaction."""
    report = compaction.report
    return {
        "trigger": compaction.trigger,
        "preTokens": compaction.tokens_before,
        "postTokens": compaction.tokens_after,
        **{name: getattr(report, name) for name in _COUNTS},
        "hint": compaction.hint,
        "computed": report.computed,
        "problem": report.problem,
    }


def compaction_of(record: Mapping[str, Any]) -> Compaction | None:
    """Return the compaction that a record holds, or None where it holds none, or one that is damaged."""
    match record:
        case {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": str(uuid),
            "compactMetadata": {"trigger": trigger, "preTokens": int(before), "postTokens": int(after), **details},
            "upTo": str(up_to),
            "pinned": list(pinned),
            "added": list(added),
            "keptFrom": str() | None as kept_from,
            "notes": dict(notes),
        } if trigger in COMPACTION_TRIGGERS:
            reminders = [_reminder(item) for item in added]
            is_whole = all(isinstance(id_, str) for id_ in pinned) and all(
                isinstance(note, str) for note in notes.values()
            )
            if not is_whole or None in reminders:
                return None
            return Compaction(
                trigger=trigger,
                up_to=up_to,
                tokens_before=before,
                tokens_after=after,
                pinned=tuple(pinned),
                added=tuple(message for message in reminders if message is not None),
                kept_from=kept_from,
                notes=notes,
                report=_report(details),
                reply=_reply(record.get("reply")),
                hint=str(details.get("hint", "")),
                uuid=uuid,
            )
    return None


def _reminder(item: Any) -> SystemReminder | None:
    match item:
        case {"uuid": str(uuid), "content": str(text), "cause": str(cause)}:
            return SystemReminder(uuid=uuid, text=text, cause=cause)
    return None


def _report(details: Mapping[Any, Any]) -> CompactionReport:
    counts = {name: count for name in _COUNTS if isinstance(count := details.get(name), int)}
    return CompactionReport(
        **counts, computed=str(details.get("computed", "")), problem=str(details.get("problem", ""))
    )


def _reply(record: Any) -> AssistantMessage | None:
    message = message_of(record) if isinstance(record, dict) else None
    return message if isinstance(message, AssistantMessage) else None
