"""The events of a turn as lines of the debug log: what was asked, decided and run, and how it ended."""

import logging

from panpan.types.events import (
    Compacted,
    Event,
    PermissionDecided,
    RetryScheduled,
    RoundEnded,
    ToolFinished,
    ToolStarted,
)
from panpan.types.messages import AssistantMessage, SystemReminder

log = logging.getLogger(__name__)


def log_event(event: Event) -> None:
    """Log what `event` says; deltas and progress are left out."""
    match event:
        case AssistantMessage():
            fields = {
                "model": event.model,
                "stop_reason": event.stop_reason,
                "usage": event.usage.model_dump(),
                "duration_s": round(event.duration_s, 3),
                "tools": [use.name for use in event.tool_uses],
            }
            log.debug("reply", extra=fields)
        case RetryScheduled():
            log.debug("retry", extra={"attempt": event.attempt, "reason": event.reason, "delay_s": event.delay_s})
        case PermissionDecided():
            fields = {
                "tool": event.name,
                "is_allowed": event.is_allowed,
                "reason": event.reason,
                "reasons": [reason.as_json() for reason in event.reasons],
                "digest": event.digest,
            }
            log.debug("permission", extra=fields)
        case ToolStarted():
            log.debug("tool started", extra={"tool": event.name, "title": event.title, "id": event.tool_use_id})
        case ToolFinished():
            fields = {"id": event.tool_use_id, "is_error": event.is_error, "duration_s": round(event.duration_s, 3)}
            log.debug("tool finished", extra=fields)
        case SystemReminder():
            log.debug("reminder", extra={"cause": event.cause, "chars": len(event.text)})
        case Compacted(compaction=compaction):
            fields = {
                "trigger": compaction.trigger,
                "before": compaction.tokens_before,
                "after": compaction.tokens_after,
            }
            log.debug("compacted", extra=fields)
        case RoundEnded():
            log.debug("round ended", extra={"number": event.number})
        case _:
            pass
