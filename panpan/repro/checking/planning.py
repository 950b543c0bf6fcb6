"""Runs that a verdict needs: first with each seed, then repeats and further seeds where a number misses."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice

from panpan.repro.checking.evidence import Evidence, reference_seed
from panpan.repro.checking.judging import ENOUGH_SEEDS, judge_all
from panpan.repro.checking.results import ClaimRun
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.written_number import read_number

_ENOUGH_REPEATS = 3
"""Runs with one seed where they differ."""


def first_seeds(claim: Claim, seeds: int | None) -> Sequence[int | None]:
    """Return the seed of each run to begin with, the one that counts first in front; None for no seed.

    Args:
        claim: The claim.
        seeds: Different seeds that the user wants; None: those of the claim, or one.
    """
    runs = claim.tolerance.runs or 1
    if not claim.takes_seed:
        return (None,) * runs
    wanted = max(seeds or len(claim.seeds), runs, 1)
    return tuple(islice(_all_seeds(claim), wanted))


def further_seeds(claim: Claim, runs: Sequence[ClaimRun]) -> Sequence[int | None]:
    """Return the seeds of further runs without which no verdict can be reached; none once they were tried.

    Args:
        claim: The claim.
        runs: Its runs so far.
    """
    claimed = read_number(claim.value)
    if claimed is None:
        return ()
    verdict = judge_all([claim], {claim.id: runs}, obstacles={})[0].verdict
    found = Evidence(claim, claimed, runs)
    if not found.measured or verdict in ("reproduced", "within spread"):
        return ()
    tried = Counter(run.seed if claim.takes_seed else None for run in runs)
    repeats = max((_ENOUGH_REPEATS if found.varies else 2) - tried[found.reference], 0)
    more: Iterator[int] = iter(())
    if claim.takes_seed and claim.seed is None:
        more = islice((seed for seed in _all_seeds(claim) if seed not in tried), max(ENOUGH_SEEDS - len(tried), 0))
    return (*(found.reference,) * repeats, *more)


def _all_seeds(claim: Claim) -> Iterator[int]:
    """Yield different seeds without end: the one that counts first, those of the claim, then 0, 1, 2 and so on."""
    first = reference_seed(claim)
    assert first is not None, "its command takes a seed"
    given = dict.fromkeys((first, *claim.seeds))
    yield from given
    yield from (seed for seed in count() if seed not in given)
