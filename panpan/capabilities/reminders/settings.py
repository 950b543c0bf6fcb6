"""Settings of reminders."""

from pydantic import Field

from panpan.config.settings import Table


class ReminderSettings(Table):
    """Reminders to the model while it works, `[reminders]`; set by the user alone."""

    table = "reminders"

    max_per_session: int = Field(default=20, ge=0, le=1000)
    """Reminders of one session that are advice, such as that a file was changed. The model always gets those that it
    cannot work without, such as that plan mode is on."""
