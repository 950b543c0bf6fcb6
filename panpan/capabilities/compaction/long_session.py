"""Reminds of the time when a session has worked for long."""

import time
from collections.abc import Callable, Sequence

from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.session.reminders.source import ReminderSource
from panpan.types.messages import SystemReminder

LONG_S = 30 * 60.0

_TEXT = (
    "This session has worked for more than {minutes:.0f} minutes. Before you go on, hold what you are doing against "
    "what the user asked for last: leave what it does not need, and where he has heard nothing for long, say in a "
    "sentence how far you are. Do not speak of this reminder."
)


class LongSession(ReminderSource):
    """Counts the time of the turns; while nothing runs, none passes.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worked_s = 0.0
        """In the turns before this one."""
        self._began_s: float | None = None

    async def turn_started(self, conversation: Conversation) -> None:
        self._began_s = self._clock()

    async def turn_ended(self, conversation: Conversation) -> None:
        self._worked_s, self._began_s = self._so_far_s, None

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if self._so_far_s < LONG_S:
            return ()
        return (SystemReminder(text=_TEXT.format(minutes=LONG_S / 60), cause="session:long", priority="normal"),)

    @property
    def _so_far_s(self) -> float:
        return self._worked_s + (0.0 if self._began_s is None else self._clock() - self._began_s)
