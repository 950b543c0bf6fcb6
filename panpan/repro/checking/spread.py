"""Intervals in which a further run is expected, given some runs."""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache
from math import cos, pi, sin, sqrt

from panpan.repro.claims.written_number import EXACT

SHARE = 0.95
"""Share of further runs that lie in an interval, if runs are normally distributed."""
_FEWEST = 3
"""Fewest runs for an interval by Student's distribution: that of two would hold almost any number."""
_HALVINGS = 200
_DIGITS = 60
"""Digits of means and intervals, many more than numbers of runs have."""


def expected_interval(values: Sequence[Decimal]) -> tuple[Decimal, Decimal] | None:
    """Return the prediction interval of 95 % for one further run: mean ± t·s·√(1 + 1/k).

    Two runs give the interval between them, and one run gives none. The order of the values does not matter.
    """
    if len(values) < 2:
        return None
    if len(values) < _FEWEST:
        return min(values), max(values)
    with localcontext(EXACT) as context:
        context.prec = _DIGITS
        k, mean = len(values), mean_of(values)
        variance = sum(sorted((value - mean) ** 2 for value in values), Decimal()) / (k - 1)
        half = Decimal(t_quantile(k - 1)) * (variance * (1 + Decimal(1) / k)).sqrt()
        return mean - half, mean + half


def mean_of(values: Sequence[Decimal]) -> Decimal:
    """Return the mean of at least one number."""
    with localcontext(EXACT) as context:
        context.prec = _DIGITS
        return sum(sorted(values), Decimal()) / len(values)


@cache
def t_quantile(freedom: int) -> float:
    """Return the t for which 95 % of Student's distribution lie between -t and t.

    Args:
        freedom: Degrees of freedom, at least 1.
    """
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        if angle in (low, high):
            break
        low, high = (angle, high) if _share_within(angle, freedom) < SHARE else (low, angle)
    return sqrt(freedom) * sin(low) / cos(low)


def _share_within(angle: float, freedom: int) -> float:
    """Return the share within ±√freedom·tan(angle).

    Closed forms: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    square, is_odd = cos(angle) ** 2, freedom % 2
    term = cos(angle) if is_odd else 1.0
    total = 0.0 if freedom == 1 else term
    for number in range(2 + is_odd, freedom - 1, 2):
        term *= square * (number - 1) / number
        total += term
    return 2 / pi * (angle + sin(angle) * total) if is_odd else sin(angle) * total
