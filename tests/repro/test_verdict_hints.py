"""Observations about numbers that differ: each with an example, and none where chance would make it."""

from collections.abc import Sequence

import pytest

from panpan.repro.checking.judging import judge_all
from panpan.repro.checking.results import ClaimRun
from panpan.repro.claims.claim import Claim
from tests.repro.claim_runs import claim_of, judged, runs_of, seeded


@pytest.mark.parametrize(
    ("claimed", "measured", "hint"),
    [
        ("83.1", "81.3", "two digits are swapped: 83.1 and 81.3"),
        ("0.8312", "0.8132", "two digits are swapped: 0.8312 and 0.8132"),
        ("83.1", "63.1", "one digit differs: 83.1 and 63.1"),
        ("83.1", "83.17", "83.17 was cut off after the last digit instead of rounded"),
        ("-0.52", "0.518", "the sign differs"),
        ("83.1", "0.8312", "the claimed number is 100 times the measured one: one is in percent, the other a fraction"),
        ("0.831", "83.12", "the claimed number is 0.01 times the measured one: one is in percent"),
        ("8.31", "0.831", "the claimed number is 10 times the measured one: the point is elsewhere, or the unit"),
        ("0.8500", "0.8718", "the ratio of the numbers is 39/40"),
        ("1.1111", "1.0000", "the ratio of the numbers is 10/9"),
        ("1.0541", "1.0000", "the square of the ratio of the numbers is 10/9"),
        ("2.5714", "6.0000", "the ratio of the numbers is 3/7"),
        ("50.00", "100.00", "the ratio of the numbers is 1/2"),
    ],
)
def test_hint_names_what_may_explain_a_difference(claimed: str, measured: str, hint: str) -> None:
    found = judged(claim_of(claimed), runs_of(measured, measured))
    assert found.verdict == "deviates"
    assert [one for one in found.hints if one.startswith(hint)], found.hints


@pytest.mark.parametrize(
    ("claimed", "measured"),
    [("83.1", "83.4"), ("83.1", "79.2"), ("0.5", "0.9"), ("3", "7"), ("83.1", "0"), ("0", "83.1"), ("12.7", "11.9")],
)
def test_difference_that_chance_makes_has_no_hint(claimed: str, measured: str) -> None:
    assert judged(claim_of(claimed), runs_of(measured, measured)).hints == ()


def test_hint_names_the_seed_that_gives_the_number() -> None:
    found = judged(claim_of("83.1", tolerance="exact"), [*runs_of("80.2"), *seeded("80.2", "81.7", "83.1")])
    assert found.hints == ("the claimed number is that of seed 2, not 0",)


def test_hint_names_the_row_that_has_the_number() -> None:
    claims = [claim_of("83.1", id="mean"), claim_of("84.9", id="median")]
    runs = {"mean": runs_of("84.92", "84.92"), "median": runs_of("83.08", "83.08")}
    hints = [one.hints for one in judge_all(claims, runs, obstacles={})]
    assert hints == [("the claimed number is that of median",), ("the claimed number is that of mean",)]


@pytest.mark.parametrize(
    ("claim", "runs"),
    [
        (claim_of("83.1"), runs_of("83.1")),
        (claim_of("83.1"), [ClaimRun(seed=0, problem="exit code 1")]),
        (claim_of("83.1"), seeded("82.0", "84.0", "83.5")),
    ],
)
def test_hint_is_left_out_where_nothing_is_to_explain(claim: Claim, runs: Sequence[ClaimRun]) -> None:
    assert judged(claim, runs).hints == ()
