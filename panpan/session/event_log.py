"""The events of a turn as lines of the debug log: what was asked, decided and run, and how it ended.

A subagent logs its own turn; what its parent gets to see of it is not logged again.
"""

import logging
from typing import Any

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


def log_event(event: Event, conversation: str) -> None:
    """Log what `event` says; deltas, progress and what happens in subagents are left out.

    Args:
        event: It.
        conversation: The id of the session, or of the subagent, whose turn it is.
    """

    def debug(what: str, **fields: Any) -> None:
        log.debug(what, extra={**fields, "conversation": conversation})

    match event:
        case AssistantMessage():
            debug(
                "reply",
                model=event.model,
                stop_reason=event.stop_reason,
                usage=event.usage.model_dump(),
                duration_s=round(event.duration_s, 3),
                tools=[use.name for use in event.tool_uses],
            )
        case RetryScheduled():
            debug("retry", attempt=event.attempt, reason=event.reason, delay_s=event.delay_s)
        case PermissionDecided():
            debug(
                "permission",
                tool=event.name,
                is_allowed=event.is_allowed,
                reason=event.reason,
                reasons=[reason.as_json() for reason in event.reasons],
                digest=event.digest,
            )
        case ToolStarted():
            debug("tool started", tool=event.name, title=event.title, id=event.tool_use_id)
        case ToolFinished():
            debug(
                "tool finished",
                id=event.tool_use_id,
                is_error=event.is_error,
                duration_s=round(event.duration_s, 3),
            )
        case SystemReminder():
            debug("reminder", cause=event.cause, chars=len(event.text))
        case Compacted(compaction=compaction):
            debug(
                "compacted",
                trigger=compaction.trigger,
                before=compaction.tokens_before,
                after=compaction.tokens_after,
            )
        case RoundEnded():
            debug("round ended", number=event.number)
        case _:
            pass
