"""Claims and runs for tests of verdicts."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from panpan.repro.checking.judging import judge_all
from panpan.repro.checking.results import ClaimRun, DataCheck, Judgement
from panpan.repro.claims.claim import Claim

COMMAND = "python run.py --seed {seed}"


def claim_of(value: str = "83.1", **fields: Any) -> Claim:
    """A claim that can be run; its command takes a seed, and the paper names 0."""
    given = {"id": "t/a", "command": COMMAND, "seed": 0, "extract": {"output": "(.*)"}, "confirmed": True, **fields}
    return Claim.model_validate({"value": value, **given})


def runs_of(*numbers: str, seed: int | None = 0) -> list[ClaimRun]:
    """Runs with one seed."""
    return [ClaimRun(seed=seed, attempt=at, number=number) for at, number in enumerate(numbers, 1)]


def seeded(*numbers: str) -> list[ClaimRun]:
    """Runs with the seeds 0, 1, 2 and so on."""
    return [ClaimRun(seed=seed, number=number) for seed, number in enumerate(numbers)]


def judged(claim: Claim, runs: Sequence[ClaimRun], data: Sequence[DataCheck] = ()) -> Judgement:
    """The judgement of one claim."""
    return judge_all([claim], {claim.id: runs}, obstacles={}, data=data)[0]


DECIMALS = st.decimals(-999, 999, places=2, allow_nan=False).map(str)
CLAIMS = st.builds(
    claim_of,
    DECIMALS,
    command=st.sampled_from([COMMAND, "python run.py"]),
    seed=st.sampled_from([None, 0, 3]),
    spread=st.none() | st.floats(0, 5),
    tolerance=st.sampled_from(
        [{}, {"absolute": 0.5}, {"relative": 0.01}, {"runs": 3}, {"exact": True}],
    ),
)


@st.composite
def claims_with_runs(draw: st.DrawFn) -> tuple[Claim, list[ClaimRun]]:
    """A claim, and runs of which some are near it and some gave no number."""
    claim = draw(CLAIMS)
    near = st.integers(-20, 20).map(lambda steps: f"{float(claim.value) + steps / 100:.2f}")
    numbers = draw(st.lists(near | DECIMALS | st.sampled_from([claim.value, ""]), max_size=8))
    runs: list[ClaimRun] = []
    for number in numbers:
        seed = draw(st.integers(0, 3)) if claim.takes_seed else None
        attempt = 1 + sum(run.seed == seed for run in runs)
        runs.append(ClaimRun(seed=seed, attempt=attempt, number=number, problem="" if number else "it failed"))
    return claim, runs
