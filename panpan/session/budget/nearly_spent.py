"""What the model is told of limits of which most is spent."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from panpan.session.budget.spending import Spending
from panpan.types.agent import SpendingLimits

NEARLY = 0.8
"""Share of a limit from which on it is nearly spent."""


class Spender(Protocol):
    """What is looked at of a budget."""

    name: str
    limits: SpendingLimits

    @property
    def spent(self) -> Spending:
        """What was spent so far."""
        ...


def nearly_spent(budgets: Iterable[Spender]) -> str:
    """Return a sentence about limits of which most is spent; empty where there is none."""
    parts = [part for budget in budgets for part in _parts(budget)]
    return f"Of the budget, {'; '.join(parts)}." if parts else ""


def _parts(budget: Spender) -> Iterator[str]:
    limits, spent = budget.limits, budget.spent
    whose = f" of {budget.name}" if budget.name else ""
    if limits.usd is not None and spent.known_usd >= NEARLY * limits.usd:
        yield f"${spent.known_usd:.4f} of ${limits.usd:.4f}{whose} is spent"
    if limits.tokens is not None and spent.tokens >= NEARLY * limits.tokens:
        yield f"{spent.tokens:,} of {limits.tokens:,} tokens{whose} are spent"
    if limits.calls is not None and spent.calls >= NEARLY * limits.calls:
        yield f"{spent.calls:,} of {limits.calls:,} requests{whose} are made"
    if limits.seconds is not None and spent.seconds >= NEARLY * limits.seconds:
        yield f"{spent.seconds:.0f} of {limits.seconds:.0f} seconds{whose} are used"
