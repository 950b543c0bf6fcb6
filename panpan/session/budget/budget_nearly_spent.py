"""Reminds of a budget that is nearly spent, so that the work ends with an answer and not in the middle."""

from collections.abc import Callable, Sequence
from dataclasses import astuple

from panpan.core.hooks import Round
from panpan.session.reminders.source import ReminderSource
from panpan.types.agent import SpendingLimits
from panpan.types.messages import SystemReminder

_TEXT = (
    "{sentence} When it is spent, the turn ends without another reply. Do what matters most first, and say in time "
    "what is done and what is left."
)


class BudgetNearlySpent(ReminderSource):
    """Watches a budget.

    Args:
        sentence: Says what of it is nearly spent, as a sentence; empty as long as nothing is.
        limits: Returns what it may be, so that another budget is another occasion.
    """

    def __init__(self, sentence: Callable[[], str], limits: Callable[[], SpendingLimits]) -> None:
        self._sentence = sentence
        self._limits = limits

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if not (sentence := self._sentence()):
            return ()
        occasion = "-".join(f"{amount:g}" for amount in astuple(self._limits()) if amount is not None)
        return (SystemReminder(text=_TEXT.format(sentence=sentence), cause=f"budget:nearly_spent:{occasion}"),)
