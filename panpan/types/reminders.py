"""Reminders: their causes, which stand in the log and never change, and the project's text made safe for one."""

import re

PROJECT_CONTEXT = "session:start"
"""The project context at the beginning of a session."""

MEMORY = "memory:"
"""Beginning of the causes of rules files that were told later; the file follows."""

PLAN_MODE_ON, PLAN_MODE_OFF = "plan_mode:on", "plan_mode:off"
"""Plan mode has begun, or still is on; it is over."""

NOTICE, WORDS, RECORD, SUMMARY = "compact:notice", "compact:words", "compact:record", "compact:summary"
LAST_REPLY = "compact:last-reply"
"""What stands for the older part of a conversation that became shorter: the notice of it, what the user said, what was
done, a summary, and the end of the reply that the user's next message answers."""

PLAN = "compact:plan"
"""The plan, where the conversation became shorter."""

_TASK = re.compile(r"task:([0-9a-f]{8})(:running)?")


def task_told(cause: str) -> tuple[str, bool] | None:
    """Return the id of the background task that a reminder is about, and True if it says that the task still runs."""
    found = _TASK.fullmatch(cause)
    return (found[1], found[2] is not None) if found else None


_OUR_TAGS = re.compile(r"<(?=\s{0,9}/?\s{0,9}(?:system-reminder|context|rules)\b)", re.IGNORECASE)


def untagged(text: str) -> str:
    """Return `text` with the tags defused that panpan itself sets around it."""
    return _OUR_TAGS.sub("&lt;", text)
