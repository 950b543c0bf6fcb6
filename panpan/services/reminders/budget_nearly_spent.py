"""Reminds of a budget that is nearly spent, so that the work ends with an answer and not in the middle."""

from collections.abc import Callable, Sequence

from panpan.core.hooks import Round
from panpan.services.reminders.source import ReminderSource
from panpan.types.messages import SystemReminder

_TEXT = (
    "{sentence} When it is spent, the turn ends without another reply. Do what matters most first, and say in time "
    "what is done and what is left."
)


class BudgetNearlySpent(ReminderSource):
    """Watches a budget.

    Args:
        sentence: Says which budget is nearly spent and how much is left, as a sentence; empty as long as none is.
    """

    def __init__(self, sentence: Callable[[], str]) -> None:
        self._sentence = sentence

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if not (sentence := self._sentence()):
            return ()
        return (SystemReminder(text=_TEXT.format(sentence=sentence), cause="budget:nearly_spent"),)
