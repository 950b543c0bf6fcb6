"""Causes of reminders that more than one part reads. They stand in the log, so that they never change."""

PROJECT_CONTEXT = "session:start"
"""The project context at the beginning of a session."""

MEMORY = "memory:"
"""Beginning of the causes of rules files that were told later; the file follows."""

PLAN_MODE_ON, PLAN_MODE_OFF = "plan_mode:on", "plan_mode:off"
"""Plan mode has begun, or still is on; it is over."""

PLAN = "compact:plan"
"""The plan, where the conversation became shorter."""
