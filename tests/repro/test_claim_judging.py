"""Verdicts: each rule with an example, and what holds for all claims and runs."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.receipts.receipt import FileDigest
from panpan.repro.checking.claim_runs import further_seeds
from panpan.repro.checking.judging import Obstacle, judge_all, obstacle_of
from panpan.repro.checking.results import ClaimRun, DataCheck
from panpan.repro.claims.claim import Claim, Verdict
from panpan.repro.claims.written_number import read_number
from tests.repro.claim_runs import CLAIMS, claim_of, claims_with_runs, judged, runs_of, seeded
from tests.repro.judged_claims import receipt_of

OTHER_DATA = DataCheck(path="d.csv", found=FileDigest(path="d.csv"), problem="d.csv is not the file that was stated")


@pytest.mark.parametrize(
    ("claim", "runs", "verdict", "reason"),
    [
        (claim_of("83.1"), runs_of("83.14"), "reproduced", "83.14 with the paper's seed 0 is within half a unit of"),
        (claim_of("83.1"), runs_of("83.15"), "reproduced", "83.15"),
        (claim_of("3.50", tolerance={"absolute": 0.01}), runs_of("3.51"), "reproduced", "within 0.01 of 3.50"),
        (claim_of("200", tolerance={"relative": 0.01}), runs_of("202"), "reproduced", "within 1 % of 200"),
        (claim_of("0.5", tolerance="exact"), runs_of("0.500"), "reproduced", "exactly 0.5"),
        (claim_of("83.1", extract={"output": "(.)", "scale": 100}), runs_of("0.831"), "reproduced", ""),
        (claim_of("83.1", seed=None), seeded("83.1", "90"), "reproduced", "with seed 0"),
        (claim_of("0.98"), runs_of("0.9800000000000001"), "reproduced", "0.98 with the paper's seed 0 is within half"),
        (claim_of("83.1", command="make"), runs_of("83.1", seed=None), "reproduced", "83.1 is within half a unit of"),
        (claim_of("83.1"), seeded("82", "84", "83.6"), "within spread", "the 95 % prediction interval of 3 seeds"),
        (claim_of("83.1"), seeded("82", "84"), "within spread", "83.1 lies in 82.0 to 84.0, the range of 2 seeds"),
        (claim_of("83.1", spread=0.5), runs_of("83.5", "83.5"), "within spread", "the paper's own spread of ± 0.5"),
        (claim_of("83.1"), runs_of("80.2", "83.1"), "within spread", "1 of 2 match"),
        (claim_of("83.1"), runs_of("80.2", "80.2"), "deviates",
         "80.2 with the paper's seed 0 instead of 83.1, the same in 2 runs"),
        (claim_of("83.1", command="make"), runs_of("80.2", "80.2", seed=None), "deviates", "80.2 instead of 83.1"),
        (claim_of("83.1", seed=None), [*runs_of("80.2"), *seeded("80.2", "80.3", "80.1")], "deviates",
         "3 seeds lead to expect 79.7 to 80.7"),
        (claim_of("0.5", tolerance="exact"), runs_of("0.500001", "0.500001"), "deviates", "0.500001 with"),
        (claim_of("83.1"), runs_of("80.2"), "not run", "the repeat with the same seed is missing"),
        (claim_of("83.1", seed=None), runs_of("80.2", "80.2"), "not run", "but 1 seed cannot show a deviation"),
        (claim_of("83.1"), [ClaimRun(seed=0, problem="exit code 1"), *runs_of("80.2", "80.2", seed=1)], "not run",
         "the run with the paper's seed 0 gave no number"),
        (claim_of("83.1"), [], "not run", "there was no run"),
        (claim_of("83.1"), [ClaimRun(seed=0, problem="m.json is missing")], "not run", "m.json is missing"),
        (claim_of("83.1"), runs_of("70.1", "71.4"), "not reproducible",
         "the same command and seed give other numbers each time, and none is near: 70.1, 71.4"),
    ],
)  # fmt: skip
def test_verdict_follows_the_runs(claim: Claim, runs: Sequence[ClaimRun], verdict: Verdict, reason: str) -> None:
    found = judged(claim, runs)
    assert found.verdict == verdict
    assert reason in found.reason


def test_number_that_is_off_with_other_data_is_not_reproducible() -> None:
    found = judged(claim_of("83.1"), runs_of("80.2", "80.2"), [OTHER_DATA])
    assert found.verdict == "not reproducible"
    assert found.reason.endswith("instead of 83.1, with other data: d.csv is not the file that was stated")
    assert judged(claim_of("83.1"), runs_of("83.1"), [OTHER_DATA]).verdict == "reproduced"


def test_claim_that_a_person_gave_up_is_not_reproducible() -> None:
    claim = claim_of(not_reproducible="the data was withdrawn")
    obstacle = obstacle_of(claim, is_confirmed=True)
    assert obstacle is not None
    found = judge_all([claim], {}, obstacles={claim.id: obstacle})[0]
    assert (found.verdict, found.reason) == ("not reproducible", "the data was withdrawn")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (claim_of(""), "the claim has no number; write the paper's number as its value"),
        (claim_of("state of the art"), '"state of the art" is no number; write'),
        (claim_of(command=""), "no command is known; write one into claims.toml"),
        (claim_of(extract=None), "the place of the number is not known; write extract into claims.toml"),
    ],
)
def test_claim_that_cannot_be_run_says_why(claim: Claim, reason: str) -> None:
    found = judged(claim, [])
    assert found.verdict == "not run"
    assert (obstacle := obstacle_of(claim, is_confirmed=True)) is not None
    assert reason in obstacle.reason


def test_unconfirmed_claim_waits() -> None:
    claim = claim_of()
    obstacle = obstacle_of(claim, is_confirmed=False)
    assert obstacle is not None
    found = judge_all([claim], {}, obstacles={claim.id: obstacle})[0]
    assert (found.verdict, found.waits_for_confirmation) == ("not run", True)
    assert obstacle_of(claim, is_confirmed=True) is None


@given(claims_with_runs(), st.randoms(use_true_random=False))
def test_judgement_does_not_depend_on_the_order(case: tuple[Claim, list[ClaimRun]], random: object) -> None:
    claim, runs = case
    shuffled = sorted(runs, key=lambda _: random.random())  # type: ignore[attr-defined]
    one, other = judged(claim, runs), judged(claim, shuffled)
    assert (one.verdict, one.reason, one.interval, one.hints) == (
        other.verdict, other.reason, other.interval, other.hints,
    )  # fmt: skip


@given(claims_with_runs())
def test_runs_that_differ_with_the_same_seed_never_deviate(case: tuple[Claim, list[ClaimRun]]) -> None:
    claim, runs = case
    seeds: dict[int | None, set[Decimal]] = {}
    for run in runs:
        if (number := read_number(run.number)) is not None:
            seeds.setdefault(run.seed, set()).add(number.value)
    if any(len(values) > 1 for values in seeds.values()):
        assert judged(claim, runs).verdict != "deviates"


@given(claims_with_runs())
def test_deviation_was_repeated_and_is_outside(case: tuple[Claim, list[ClaimRun]]) -> None:
    claim, runs = case
    found = judged(claim, runs)
    if found.verdict == "deviates":
        claimed = float(claim.value)
        numbers = [run.number for run in runs if not run.problem]
        assert len(numbers) > len({(run.seed, run.number) for run in runs if not run.problem})
        if found.interval is not None and not claim.tolerance.exact:
            assert not found.interval[0] <= claimed <= found.interval[1]
        assert claim.value not in [run.number for run in runs if claim.seed is None or run.seed == claim.seed]


@given(CLAIMS, st.integers(1, 4), st.floats(-1, 1))
def test_number_within_the_tolerance_is_reproduced(claim: Claim, times: int, share: float) -> None:
    value = Decimal(claim.value)
    widths = {"absolute": Decimal("0.5"), "relative": abs(value) * Decimal("0.01"), "exact": Decimal(0)}
    given_by = next(iter(claim.tolerance.model_dump(exclude_defaults=True)), "digits")
    number = value + widths.get(given_by, Decimal("0.005")) * Decimal(share)
    seed = claim.seed or 0 if claim.takes_seed else None
    assert judged(claim, runs_of(*[f"{number:f}"] * times, seed=seed)).verdict == "reproduced"


@given(claims_with_runs())
def test_claim_with_an_obstacle_is_never_judged_by_runs(case: tuple[Claim, list[ClaimRun]]) -> None:
    claim, runs = case
    found = judge_all([claim], {claim.id: runs}, obstacles={claim.id: Obstacle("it needs 4 GPUs; there are none")})[0]
    assert (found.verdict, found.reason, found.measured) == ("not run", "it needs 4 GPUs; there are none", ())


def test_same_number_in_runs_that_differ_is_repeated_more() -> None:
    """Two runs of what is not deterministic may give the same number by chance."""
    claim = claim_of("9", extract={"json": "m.json"})

    def runs(*contents: str) -> list[ClaimRun]:
        written = (FileDigest(path="m.json", sha256=content * 64) for content in contents)
        return [
            run.model_copy(update={"receipt": receipt_of(0).model_copy(update={"outputs": (file,)})})
            for run, file in zip(runs_of(*["7"] * len(contents)), written, strict=True)
        ]

    assert judged(claim, runs("a", "a")).verdict == "deviates"
    assert further_seeds(claim, runs("a", "b")) == (0,)
    assert judged(claim, runs("a", "b")).verdict == "not run"
    assert judged(claim, runs("a", "b", "a")).verdict == "deviates"
