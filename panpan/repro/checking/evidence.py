"""Numbers of a claim's runs beside the claimed one, and the interval in which a further one is expected.

The rule: all numbers are in the unit of the claim, and nothing depends on the order of runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from functools import cache, cached_property
from math import cos, pi, sin, sqrt

from panpan.receipts.receipt import Receipt
from panpan.repro.checking.results import ClaimRun
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.written_number import EXACT, WrittenNumber, read_number

_SHARE = 0.95
"""Share of further runs that lie in an interval, if runs are normally distributed."""
_FEWEST = 3
"""Fewest runs for an interval by Student's distribution: that of two would hold almost any number."""
_HALVINGS = 200
_DIGITS = 60
"""Digits of means and intervals, many more than numbers of runs have."""
_FEWEST_REPEATS, _MORE_REPEATS = 2, 3


def reference_seed(claim: Claim) -> int | None:
    """Return the seed of the run that counts first: the paper's, else the first that is given, else 0.

    None if the command takes no seed.
    """
    if not claim.takes_seed:
        return None
    if claim.seed is not None:
        return claim.seed
    return claim.seeds[0] if claim.seeds else 0


def _tolerance_of(claim: Claim, claimed: WrittenNumber) -> Decimal:
    """Return the distance that a number may have; half a unit of the last written digit if the claim says nothing."""
    tolerance = claim.tolerance
    if tolerance.exact:
        return Decimal()
    if tolerance.absolute is not None:
        return _decimal(tolerance.absolute)
    if tolerance.relative is not None:
        return EXACT.multiply(_decimal(tolerance.relative), abs(claimed.value))
    return half_of(claimed)


def half_of(claimed: WrittenNumber) -> Decimal:
    """Return half a unit of the last written digit: the number before it was rounded is not farther away."""
    return EXACT.multiply(claimed.step, Decimal("0.5"))


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number)).normalize()  # as it is written in claims.toml


class Evidence:
    """Numbers of one claim.

    Args:
        claim: A claim whose value is a number.
        claimed: That number.
        runs: Its runs, in any order.
    """

    def __init__(self, claim: Claim, claimed: WrittenNumber, runs: Sequence[ClaimRun]) -> None:
        self.claim = claim
        self.claimed = claimed
        self.tolerance = _tolerance_of(claim, claimed)
        self._runs = runs

    @cached_property
    def measured(self) -> Sequence[Decimal]:
        """Numbers of the runs that have one, in the order of the runs."""
        return [value for _, value in self._values()]

    @cached_property
    def by_seed(self) -> Mapping[int | None, Sequence[Decimal]]:
        """Numbers of each seed, sorted; all under None if the command takes no seed."""
        found: dict[int | None, list[Decimal]] = {}
        for seed, value in self._values():
            found.setdefault(seed, []).append(value)
        return {seed: sorted(found[seed]) for seed in sorted(found, key=lambda seed: (seed is not None, seed or 0))}

    def _values(self) -> Iterator[tuple[int | None, Decimal]]:
        scale = _decimal(self.claim.extract.scale) if self.claim.extract else Decimal(1)
        for run in self._runs:
            found = None if run.problem else read_number(run.number)
            if found is not None:
                yield (run.seed if self.claim.takes_seed else None), EXACT.multiply(found.value, scale)

    @property
    def reference(self) -> int | None:
        """The seed that counts first: of those that ran, if the paper names none."""
        seed = reference_seed(self.claim)
        if seed in self.by_seed or self.claim.seed is not None or not self.by_seed:
            return seed
        return next(iter(self.by_seed))

    @property
    def at_reference(self) -> Sequence[Decimal]:
        """Numbers with that seed, sorted."""
        return self.by_seed.get(self.reference, ())

    @property
    def varies(self) -> bool:
        """True if the command gave several numbers with the same seed."""
        return any(values[0] != values[-1] for values in self.by_seed.values())

    @property
    def is_repeated(self) -> bool:
        """True if the seed that counts first ran as often as a deviation needs."""
        return len(self.at_reference) >= self.repeats_needed

    @property
    def repeats_needed(self) -> int:
        """Runs with the seed that counts first without which nothing deviates.

        More where runs with the same number differ otherwise: the number may be the same by chance.
        """
        return _MORE_REPEATS if self.varies or self._results_vary else _FEWEST_REPEATS

    @property
    def _results_vary(self) -> bool:
        """True if runs with the seed that counts first printed something else, or wrote another file of numbers."""
        runs = [run for run in self._runs if not self.claim.takes_seed or run.seed == self.reference]
        receipts = [run.receipt for run in runs if run.receipt is not None and not run.problem]
        return len({self._digests_of(receipt) for receipt in receipts}) > 1

    def _digests_of(self, receipt: Receipt) -> Sequence[str]:
        path = self.claim.extract.path if self.claim.extract is not None else ""
        written = (one.sha256 for one in receipt.outputs if path and one.path == path)
        return (receipt.output_sha256, *written)

    @cached_property
    def independent(self) -> Sequence[Decimal]:
        """Numbers of independent runs: one for a seed that gives the same number each time."""
        return [
            value
            for values in self.by_seed.values()
            for value in (values[:1] if values[0] == values[-1] else values)
        ]  # fmt: skip

    @cached_property
    def interval(self) -> tuple[Decimal, Decimal] | None:
        """Interval in which a further run is expected; None with fewer than two independent runs."""
        return expected_interval(self.independent)

    def is_near(self, value: Decimal) -> bool:
        """True if a number is within the tolerance of the claimed one."""
        return abs(EXACT.subtract(value, self.claimed.value)) <= self.tolerance


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
        low, high = (angle, high) if _share_within(angle, freedom) < _SHARE else (low, angle)
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
