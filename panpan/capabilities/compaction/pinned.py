"""Reminders that stay as they are, however old: what the project demands, and that plan mode is on."""

from collections.abc import Sequence

from panpan.types.messages import Message, SystemReminder
from panpan.types.reminder_causes import MEMORY, PLAN_MODE_OFF, PLAN_MODE_ON, PROJECT_CONTEXT


def pinned_reminders(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the reminders that stay: project context, memory files, and that plan mode is on."""
    reminders = [message for message in messages if isinstance(message, SystemReminder)]
    pinned = [one.uuid for one in reminders if one.cause == PROJECT_CONTEXT or one.cause.startswith(MEMORY)]
    newest_mode = next((one for one in reversed(reminders) if one.cause in (PLAN_MODE_ON, PLAN_MODE_OFF)), None)
    is_on = newest_mode is not None and newest_mode.cause == PLAN_MODE_ON
    # the first notice says what plan mode means, later ones only that it is on
    notice = next((one for one in _since_mode_began(reminders)), None) if is_on else None
    return pinned if notice is None else [*pinned, notice.uuid]


def _since_mode_began(reminders: Sequence[SystemReminder]) -> list[SystemReminder]:
    """Return the notices of plan mode since it was switched on last."""
    notices: list[SystemReminder] = []
    for one in reminders:
        if one.cause == PLAN_MODE_OFF:
            notices = []
        elif one.cause == PLAN_MODE_ON:
            notices.append(one)
    return notices
