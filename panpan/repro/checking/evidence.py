"""Numbers of a claim's runs beside the claimed one, in the unit of the claim. Nothing depends on the order of runs."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property

from panpan.repro.checking.results import ClaimRun
from panpan.repro.checking.spread import expected_interval
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.written_number import EXACT, WrittenNumber, read_number


def reference_seed(claim: Claim) -> int | None:
    """Return the seed of the run that counts first: the paper's, else the first that is given, else 0.

    None if the command takes no seed.
    """
    if not claim.takes_seed:
        return None
    if claim.seed is not None:
        return claim.seed
    return claim.seeds[0] if claim.seeds else 0


def tolerance_of(claim: Claim, claimed: WrittenNumber) -> Decimal:
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
        self.tolerance = tolerance_of(claim, claimed)
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
        """True if the seed that counts first ran more than once."""
        return len(self.at_reference) > 1

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
