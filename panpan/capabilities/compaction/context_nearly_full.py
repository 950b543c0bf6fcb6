"""Reminds of a context window that is nearly full, before its older part gives way to what stands for it."""

from collections.abc import Callable, Sequence

from panpan.capabilities.compaction.limits import limits_of
from panpan.config.settings import CompactionSettings
from panpan.core.hooks import Round
from panpan.session.context_usage import used_tokens
from panpan.session.reminders.source import ReminderSource
from panpan.types.messages import SystemReminder

NEARLY = 0.85
"""What of the limit is filled then."""

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
    """Watches how much of the window is filled.

    Args:
        settings: When the conversation is made shorter.
        window_tokens: Returns the size of the model's window; None: it is not known, or nobody has to care.
    """

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
