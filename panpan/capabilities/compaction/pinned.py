"""Reminders that stay as they are, however old: what the project demands, and that plan mode is on."""

from collections.abc import Sequence

from panpan.capabilities.plan_mode.plan_mode import OFF, ON
from panpan.capabilities.project_context.collect import SESSION_START
from panpan.capabilities.project_context.nested_memory import CAUSE as MEMORY
from panpan.types.messages import Message, SystemReminder


def pinned_reminders(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the reminders that stay: project context, memory files, and that plan mode is on."""
    reminders = [message for message in messages if isinstance(message, SystemReminder)]
    pinned = [one.uuid for one in reminders if one.cause == SESSION_START or one.cause.startswith(MEMORY)]
    newest_mode = next((one for one in reversed(reminders) if one.cause in (ON, OFF)), None)
    is_on = newest_mode is not None and newest_mode.cause == ON
    # the first notice says what plan mode means, later ones only that it is on
    notice = next((one for one in _since_mode_began(reminders)), None) if is_on else None
    return pinned if notice is None else [*pinned, notice.uuid]


def _since_mode_began(reminders: Sequence[SystemReminder]) -> list[SystemReminder]:
    """Return the notices of plan mode since it was switched on last."""
    notices: list[SystemReminder] = []
    for one in reminders:
        if one.cause == OFF:
            notices = []
        elif one.cause == ON:
            notices.append(one)
    return notices
