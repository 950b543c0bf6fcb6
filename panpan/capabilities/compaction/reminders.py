"""Reminds the model of a context window that is nearly full, and of the time when a session has worked for long."""

import time
from collections.abc import Callable, Sequence

from panpan.capabilities.compaction.make_room import limits_of
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.session.context_usage import used_tokens
from panpan.session.reminders import ReminderSource
from panpan.types.messages import SystemReminder

NEARLY = 0.85
"""Share of the limit."""

_SHORTER = (
    "The context window is nearly full. Soon the older part of this conversation will be replaced by a record of what "
    "was done, the user's words and a summary. What you found out and still need, such as names, figures and what did "
    "not work, say it in your next reply or write it into a file; read only the parts of files that you need."
)
_OVER = (
    "The context window is nearly full, and nothing will make the conversation shorter by itself. Come to an end of "
    "what you are doing, and say what is done and what is left; the user can make room with /compact."
)


class ContextNearlyFull(ReminderSource):
    """Watches the share of the window that is filled."""

    def __init__(self, settings: CompactionSettings, window_tokens: Callable[[], int | None]) -> None:
        self._settings = settings
        self._window_tokens = window_tokens

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if (window_tokens := self._window_tokens()) is None:
            return ()
        conversation = round_.conversation
        limit = limits_of(self._settings, window_tokens).request_tokens
        used = used_tokens(conversation)
        is_too_late = used > limit and self._settings.enabled  # it is made shorter before this request
        if used < NEARLY * limit or is_too_late:
            return ()
        text = _SHORTER if self._settings.enabled else _OVER
        return (SystemReminder(text=text, cause=f"context:nearly_full:{len(conversation.compactions)}"),)


LONG_S = 30 * 60.0

_TEXT = (
    "This session has worked for more than {minutes:.0f} minutes. Before you go on, hold what you are doing against "
    "what the user asked for last: leave what it does not need, and where he has heard nothing for long, say in a "
    "sentence how far you are. Do not speak of this reminder."
)


class LongSession(ReminderSource):
    """Counts the time of turns."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._worked_s = 0.0
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
