"""Observations that may explain a difference between a claimed and a measured number. They decide nothing.

The rule: an observation that chance would make often is left out, so each needs some digits to rest on.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from itertools import islice, product

from panpan.repro.checking.evidence import Evidence, half_of
from panpan.repro.claims.claim import Verdict
from panpan.repro.claims.written_number import EXACT, WrittenNumber, shown_number
from panpan.system.text.terminal_text import clean_line

_FEWEST_DIGITS = 3
"""Fewest significant digits of a number that is recognised elsewhere; two digits are alike by chance."""
_MOST_COUNT = 12
"""Largest count in a ratio of two small counts."""
_MOST_ITEMS = 10_000
_MOST_HINTS = 4
_MOST_CLAIMS = 1_000
"""Most claims among which a number is looked for."""
_CHANCE = Fraction(1, 10)
"""Share of all ratios nearby that may fit a hint by chance."""


def hints_of(found: Evidence, verdict: Verdict, others: Mapping[str, Evidence]) -> Iterator[str]:
    """Yield observations about a claim that is not reproduced.

    Args:
        found: Its numbers.
        verdict: The verdict on it.
        others: The numbers of all claims, by id.
    """
    if verdict == "reproduced" or not found.measured:
        return
    hints = [*_of_seed(found)]
    if verdict != "within spread":
        value = (found.at_reference or found.independent)[0]
        hints += [
            *_of_row(found, others),
            *_of_digits(found.claimed, value),
            *_of_scale(found.claimed, value),
            *_of_ratio(found.claimed, value),
        ]
    yield from list(dict.fromkeys(hints))[:_MOST_HINTS]


def _fits(claimed: WrittenNumber, value: Decimal) -> bool:
    """True if a number is the claimed one when it is rounded to its digits."""
    return abs(EXACT.subtract(value, claimed.value)) <= half_of(claimed)


def _of_seed(found: Evidence) -> Iterator[str]:
    """Find the number among those of other seeds."""
    reference = found.reference
    if not found.claim.takes_seed or len(found.claimed.digits) < _FEWEST_DIGITS:
        return
    if not any(_fits(found.claimed, value) for value in found.at_reference):
        same = [seed for seed, values in found.by_seed.items() if any(_fits(found.claimed, value) for value in values)]
        if same:
            yield f"the claimed number is that of seed {' and '.join(map(str, same[:3]))}, not {reference}"


def _of_row(found: Evidence, others: Mapping[str, Evidence]) -> Iterator[str]:
    """Find the number among those of other claims."""
    if len(found.claimed.digits) < _FEWEST_DIGITS:
        return
    for name, other in islice(others.items(), _MOST_CLAIMS):
        is_same_claim = other is found or other.claimed.value == found.claimed.value
        if not is_same_claim and any(_fits(found.claimed, value) for value in other.at_reference):
            yield f"the claimed number is that of {clean_line(name)}"


def _of_digits(claimed: WrittenNumber, value: Decimal) -> Iterator[str]:
    """Find a typing error, and a number that was cut off instead of rounded."""
    rounded = value.quantize(claimed.step, context=EXACT)
    cut = value.quantize(claimed.step, rounding=ROUND_DOWN, context=EXACT)
    if cut == claimed.value != rounded:
        yield f"{shown_number(value, claimed)} was cut off after the last digit instead of rounded"
        return
    one, other = claimed.digits, "".join(map(str, rounded.as_tuple().digits)).lstrip("0")
    if len(one) != len(other) or len(one) < _FEWEST_DIGITS:
        return
    wrong = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    shown = shown_number(rounded, claimed)
    if (
        len(wrong) == 2
        and wrong[1] == wrong[0] + 1
        and one[wrong[0]] == other[wrong[1]]
        and one[wrong[1]] == other[wrong[0]]
    ):
        yield f"two digits are swapped: {claimed.value} and {shown}"
    if len(wrong) == 1 and wrong[0] < len(one) - 1:  # the last digit differs whenever numbers are close
        yield f"one digit differs: {claimed.value} and {shown}"


def _of_scale(claimed: WrittenNumber, value: Decimal) -> Iterator[str]:
    """Find another sign, percent instead of a fraction, and a point elsewhere."""
    if not value or not claimed.value:
        return
    if _fits(claimed, -value):
        yield "the sign differs"
        return
    for power in (-6, -3, -2, -1, 1, 2, 3, 6):
        if _fits(claimed, value.scaleb(power, context=EXACT)):
            is_percent = abs(power) == 2
            what = "one is in percent, the other a fraction" if is_percent else "the point is elsewhere, or the unit"
            yield f"the claimed number is {Decimal(10) ** power:f} times the measured one: {what}"
            return


def _of_ratio(claimed: WrittenNumber, value: Decimal) -> Iterator[str]:
    """Find a ratio that another denominator explains."""
    if not value or not claimed.value or (value < 0) != (claimed.value < 0):
        return
    ratio, half = Fraction(claimed.value) / Fraction(value), Fraction(half_of(claimed))
    if ratio == 1:
        return
    error = half / abs(Fraction(value))
    low, high = ratio - error, ratio + error
    for power, begin in ((1, "the ratio of the numbers is"), (2, "the square of the ratio of the numbers is")):
        if count := _items(low**power, high**power):
            n, m = count
            yield f"{begin} {n}/{m}: one may be divided by {max(n, m)}, and the other by {min(n, m)}"
            return
    small = {Fraction(n, m) for n, m in product(range(1, _MOST_COUNT + 1), repeat=2)}
    fitting = [one for one in small if low <= one <= high]
    nearest = min(abs(a - b) for a in fitting for b in small if a != b) if fitting else Fraction()
    if len(fitting) == 1 and high - low <= nearest * _CHANCE:
        n, m = fitting[0].as_integer_ratio()
        yield f"the ratio of the numbers is {n}/{m}: another count may be the denominator"


def _items(low: Fraction, high: Fraction) -> tuple[int, int] | None:
    """Return n and m that differ by one, if n/m lies in an interval that would hold such a ratio hardly by chance."""
    middle = (low + high) / 2
    if middle == 1 or not low > 0:
        return None
    n = round(1 / abs(middle - 1))
    for top, bottom in ((n + 1, n), (n, n + 1), (n, n - 1), (n - 1, n)):
        if bottom > 0 and 1 < top <= _MOST_ITEMS and low <= Fraction(top, bottom) <= high:
            spacing = Fraction(1, bottom * (bottom + 1))
            if high - low <= spacing * _CHANCE * 2:
                return top, bottom
    return None
