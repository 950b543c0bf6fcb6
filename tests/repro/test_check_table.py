"""The table of a check for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.checking.check_table import check_lines, claim_lines, claimed_text, measured_text
from panpan.repro.checking.judging import Obstacle, judge_all
from panpan.repro.checking.results import CheckReport, DataCheck
from panpan.repro.claims.claim import Claim, Claims
from panpan.system.text.cell_width import cell_width
from tests.repro.claim_runs import claim_of, claims_with_runs, judged, runs_of, seeded

LONG = "table-3/" + "a-row-with-a-long-name-" * 2 + "f1"


def test_table_has_a_line_for_each_claim_and_the_reasons() -> None:
    claims = [
        claim_of("3.50", id="table-1/trimmed"),
        claim_of("83.1", id="table-1/median", unit="%", spread=0.3),
        claim_of("91.0", id="gpu-a"),
        claim_of("92.0", id="gpu-b"),
        claim_of("71.2", id=LONG),
    ]
    runs = {"table-1/trimmed": runs_of("3.501"), "table-1/median": runs_of("81.3", "81.3"), LONG: seeded("70", "72.4")}
    gpu = Obstacle("it needs 4 GPUs, and this machine has none")
    report = CheckReport(
        judgements=judge_all(claims, runs, obstacles={"gpu-a": gpu, "gpu-b": gpu}),
        data=(DataCheck(path="d.csv", problem="d.csv is missing"),),
    )
    assert list(check_lines(report)) == [
        "verdict        claim                                              paper         measured",
        "reproduced     table-1/trimmed                                    3.50          3.501",
        "deviates       table-1/median                                     83.1 ± 0.3 %  81.3",
        "not run        gpu-a                                              91.0",
        "not run        gpu-b                                              92.0",
        "within spread  table-3/a-row-with-a-lon…-row-with-a-long-name-f1  71.2          70.0 to 72.4, 2 runs",
        "",
        "table-1/median: 81.3 with the paper's seed 0 instead of 83.1, the same in 2 runs",
        "  perhaps: two digits are swapped: 83.1 and 81.3",
        "gpu-a, gpu-b: it needs 4 GPUs, and this machine has none",
        f"{LONG}: 71.2 lies in 70.0 to 72.4, the range of 2",
        "  seeds",
        "",
        "data: d.csv is missing",
        "",
        "5 claims: 1 reproduced, 1 within spread, 1 deviates, 2 not run",
    ]


def test_claims_are_listed_with_what_they_lack() -> None:
    claims = Claims(
        claim=(
            claim_of("3.5", id="a"),
            claim_of("3.5", id="b", confirmed=False),
            claim_of("", id="c"),
            claim_of("3.5", id="d", not_reproducible="withdrawn"),
        )
    )
    assert list(claim_lines(claims, lambda claim: claim.confirmed)) == [
        "claim  paper      state",
        "a      3.5        ready",
        "b      3.5        nobody has confirmed it",
        "c      no number  the claim has no number",
        "d      3.5        not reproducible",
        "",
        "command: python run.py --seed {seed}",
        "",
        "4 claims, not checked yet",
    ]


def test_empty_check_says_so() -> None:
    assert list(check_lines(CheckReport())) == ["no claims"]


@given(claims_with_runs(), st.text(max_size=120), st.integers(20, 300))
def test_no_line_is_wider_than_the_screen_or_drives_it(case: object, text: str, columns: int) -> None:
    claim, runs = case  # type: ignore[misc]
    claim = claim.model_copy(update={"id": f"\x1b[31m{text}", "unit": text})
    lines = list(check_lines(CheckReport(judgements=(judged(claim, runs),)), columns))
    assert max(map(cell_width, lines)) <= 100
    assert "\x1b" not in "".join(lines)


def test_measured_numbers_are_a_range_with_their_count() -> None:
    assert measured_text(judged(claim_of("83.1"), runs_of("83.14", "83.14"))) == "83.14"
    assert measured_text(judged(claim_of("83.1"), seeded("82", "84", "83.55"))) == "82.0 to 84.0, 3 runs"
    assert measured_text(judged(claim_of("83.1"), seeded("82.0000001", "82.0000002"))) == "82.0, 2 runs"
    assert measured_text(judged(claim_of("83.1"), seeded("83.1", "84", "82"))) == "83.1; 82.0 to 84.0 in 3 runs"
    assert measured_text(judged(claim_of("83.1"), [])) == ""
    assert measured_text(judged(claim_of("1e-3"), runs_of("0.0012345678"))) == "0.00123"
    assert measured_text(judged(claim_of("3.50"), runs_of("3.5"))) == "3.50"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"value": "83.1", "unit": "%", "spread": 0.3}, "83.1 ± 0.3 %"),
        ({"value": "83.1%", "unit": "%"}, "83.1%"),
        ({"value": "12", "unit": "ms"}, "12 ms"),
        ({"value": ""}, "no number"),
    ],
)
def test_claimed_number_has_its_spread_and_unit(fields: dict[str, object], shown: str) -> None:
    assert claimed_text(Claim.model_validate({"id": "x", **fields})) == shown
