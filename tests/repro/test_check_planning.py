"""Runs that a verdict needs."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.checking.claim_runs import first_seeds, further_seeds
from panpan.repro.checking.results import ClaimRun
from panpan.repro.claims.claim import Claim
from tests.repro.claim_runs import CLAIMS, claim_of, judged, runs_of, seeded


@pytest.mark.parametrize(
    ("claim", "seeds", "first"),
    [
        (claim_of(seed=7), None, (7,)),
        (claim_of(seed=None), None, (0,)),
        (claim_of(seed=7), 3, (7, 0, 1)),
        (claim_of(seed=1), 3, (1, 0, 2)),
        (claim_of(seed=None, seeds=[5, 6]), None, (5, 6)),
        (claim_of(seed=None, seeds=[5, 6]), 3, (5, 6, 0)),
        (claim_of(tolerance={"runs": 4}), 2, (0, 1, 2, 3)),
        (claim_of(command="make"), 5, (None,)),
        (claim_of(command="make", tolerance={"runs": 2}), None, (None, None)),
    ],
)
def test_first_runs_begin_with_the_seed_that_counts(
    claim: Claim, seeds: int | None, first: Sequence[int | None]
) -> None:
    assert first_seeds(claim, seeds) == first


@pytest.mark.parametrize(
    ("claim", "runs", "further"),
    [
        (claim_of("83.1"), runs_of("83.1"), ()),
        (claim_of("83.1"), runs_of("80.2"), (0,)),
        (claim_of("83.1"), runs_of("80.2", "80.2"), ()),
        (claim_of("83.1"), runs_of("80.2", "80.4"), (0,)),
        (claim_of("83.1"), [ClaimRun(seed=0, problem="exit code 1")], ()),
        (claim_of("83.1", command="make"), runs_of("80.2", seed=None), (None,)),
        (claim_of("83.1", seed=None), runs_of("80.2"), (0, 1, 2)),
        (claim_of("83.1", seed=None), [*runs_of("80.2"), *seeded("80.2", "80.4", "80.1")], ()),
        (claim_of("best"), [], ()),
    ],
)
def test_further_runs_are_those_that_a_verdict_lacks(
    claim: Claim, runs: Sequence[ClaimRun], further: Sequence[int | None]
) -> None:
    assert further_seeds(claim, runs) == further


@given(CLAIMS, st.none() | st.integers(1, 4), st.data())
def test_further_runs_come_to_an_end(claim: Claim, seeds: int | None, data: st.DataObject) -> None:
    numbers = st.sampled_from(["83.10", "", claim.value, "83.20", "1.00"])
    runs: list[ClaimRun] = []
    wanted, rounds = first_seeds(claim, seeds), 0
    while wanted:
        for seed in wanted:
            number = data.draw(numbers)
            attempt = 1 + sum(run.seed == seed for run in runs)
            runs.append(ClaimRun(seed=seed, attempt=attempt, number=number, problem="" if number else "it failed"))
        wanted, rounds = further_seeds(claim, runs), rounds + 1
        assert rounds < 6
    found = judged(claim, runs)
    if found.verdict == "not run":
        assert any(run.problem for run in runs)
