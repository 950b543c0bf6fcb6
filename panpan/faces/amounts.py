"""Times and amounts of money as the user reads them, and how long the user was waited for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WaitingTime:
    """The time in which at least one question was open, over all questions so far.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open = 0
        self._since_s = 0.0
        """When the first of the open questions came."""
        self._before_s = 0.0
        """Of those before."""

    @property
    def seconds(self) -> float:
        return self._before_s + (self._clock() - self._since_s if self._open else 0.0)

    @property
    def is_open(self) -> bool:
        return self._open > 0

    @property
    def answered_s(self) -> float:
        """So far, without what is open."""
        return self._before_s

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the time in the block; blocks may overlap, and what they share counts once."""
        if not self._open:
            self._since_s = self._clock()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._before_s += self._clock() - self._since_s


SHOWN_FROM_S = 1.0
"""A shorter wait is not told."""


def spoken_duration(duration_s: float, waited_s: float) -> str:
    """Return how long a turn took by itself, and how long the user was waited for where that matters.

    Args:
        duration_s: All of its time.
        waited_s: In which the user was asked something.
    """
    answers = f" (and {waited_s:.0f} s for your answers)" if waited_s >= SHOWN_FROM_S else ""
    return f"{max(duration_s - waited_s, 0.0):.1f} s{answers}"


def shown_cost(known_usd: float, *, is_whole: bool, is_estimated: bool) -> str:
    """Return an amount with four decimals, or what is known of one that is not whole.

    Args:
        known_usd: US dollars of all replies whose price is known.
        is_whole: True if every price is known.
        is_estimated: True if a part of it is an estimate.
    """
    amount = cost_in_short(known_usd, is_estimated=is_estimated)
    if is_whole:
        return amount
    return f"at least {amount}; a price is not known" if known_usd else "price not known"


def cost_in_short(usd: float, *, is_estimated: bool, decimals: int = 4) -> str:
    """Return an amount such as `$0.0123`, or `~$0.0123` for one of which a part is an estimate."""
    return f"{'~' if is_estimated else ''}${usd:.{decimals}f}"
