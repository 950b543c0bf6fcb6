"""Proposals from tables: ids, units, spreads and what a file has already."""

import pytest

from panpan.errors import ConfigError
from panpan.repro.claims.claims_file import parse_claims
from panpan.repro.papers.page_tables import markdown_tables
from panpan.repro.papers.proposals import Proposals, merge, propose, proposed_text
from panpan.repro.papers.tables import ReadPaper


def proposals_of(text: str, *only: str, sha256: str = "a" * 64) -> Proposals:
    return propose(ReadPaper(markdown_tables(text), sha256, "markdown"), "README.md", only)


TABLE = """\
Table 1: Accuracy, mean ± standard deviation over 5 seeds.

| Method | Acc. (%) | Time [s] |
|---|---|---|
| Mean | 81.2 ± 0.3 | 14.8 |
| Ours<sup>a</sup> | **83.1** ± 0.2 | - |
"""


def test_claims_have_the_place_and_number_of_cells() -> None:
    claims = proposals_of(TABLE).claims
    first, second, third = claims.claim
    assert (first.id, first.table, first.row, first.column) == ("table-1/mean/acc.-%", "Table 1", "Mean", "Acc. (%)")
    assert (first.value, first.unit, first.spread) == ("81.2", "%", 0.3)
    assert first.quote == "Mean | 81.2 ± 0.3 | 14.8"
    assert (second.value, second.unit) == ("14.8", "s")
    assert (third.row, third.value, third.quote) == ("Ours", "83.1", "Ours [a] | 83.1 ± 0.2 | -")
    assert not any(claim.confirmed or claim.command or claim.extract for claim in claims.claim)
    assert (claims.paper.source, claims.paper.sha256) == ("README.md", "a" * 64)


def test_proposed_file_is_read_again_as_it_was() -> None:
    found = proposals_of(TABLE)
    assert parse_claims(proposed_text(found)) == found.claims


def test_ids_are_unique_and_stable() -> None:
    text = "## R\n\n| m | e |\n|---|---|\n| a | 1.5 |\n| a | 2.5 |\n| ü/ß | 3 |\n"
    ids = [claim.id for claim in proposals_of(text).claims.claim]
    assert ids == ["r/a", "r/a-2", "r/ü-ß"]
    assert ids == [claim.id for claim in proposals_of(text).claims.claim]


def test_brackets_are_a_spread_if_the_caption_says_so() -> None:
    table = "| m | e |\n|---|---|\n| a | 1.5 (0.2) |\n"
    said = proposals_of(f"Table 1: Errors (standard deviation in parentheses).\n\n{table}").claims.claim
    unsaid = proposals_of(f"Table 1: Errors.\n\n{table}").claims.claim
    assert [said[0].spread, unsaid[0].spread] == [0.2, None]


@pytest.mark.parametrize(
    ("caption", "head", "cell", "unit"),
    [
        ("Accuracy (%)", "Acc.", "83.1", "%"),
        ("Accuracy in percent", "Acc.", "83.1", "%"),
        ("Accuracy (%)", "Params", "25557032", ""),
        ("Accuracy", "Acc. (%) ↑", "83.1", "%"),
        ("Speed", "Time, ms", "1.5", "ms"),
        ("Speed", "Top (k=5)", "1.5", ""),
        ("Speed", "Time", "1.5 ms", "ms"),
        ("Speed", "Time", "1.5", ""),
    ],
)
def test_unit_is_that_of_cell_head_or_caption(caption: str, head: str, cell: str, unit: str) -> None:
    text = f"Table 1: {caption}.\n\n| m | {head} |\n|---|---|\n| a | {cell} |\n"
    assert proposals_of(text).claims.claim[0].unit == unit


def test_cells_of_several_numbers_are_counted() -> None:
    found = proposals_of("| m | e |\n|---|---|\n| a | 1.5 / 2.5 |\n| b | 3.5 |\n| c | < 0.1 |\n")
    assert (len(found.claims.claim), found.left_out) == (1, 2)


def test_only_named_tables_are_taken() -> None:
    both = f"{TABLE}\nTable A2: Errors.\n\n| m | e |\n|---|---|\n| a | 1.5 |\n"
    assert {claim.table for claim in proposals_of(both, "1").claims.claim} == {"Table 1"}
    assert {claim.table for claim in proposals_of(both, "a2", "Table 1").claims.claim} == {"Table 1", "Table A2"}
    with pytest.raises(ConfigError, match="no table '3'; those with numbers are: Table 1, Table A2"):
        proposals_of(both, "3")


KNOWN = b"""\
# mine
[paper]
title = "Kept"

[[claim]]
id = "table-1/mean/acc.-%"   # typed by hand
value = "81.3"
command = "python train.py"
confirmed = true
"""


def test_claims_of_the_file_stay_as_they_are() -> None:
    merged = merge(KNOWN, proposals_of(TABLE))
    assert merged.data.startswith(KNOWN)
    assert (merged.added, merged.known) == (2, 1)
    ((own, proposed),) = merged.differing
    assert (own.value, proposed.value) == ("81.3", "81.2")
    again = merge(merged.data, proposals_of(TABLE))
    assert (again.data, again.added, again.known) == (merged.data, 0, 3)


def test_file_about_another_paper_is_left_alone() -> None:
    data = merge(None, proposals_of(TABLE)).data
    with pytest.raises(ConfigError, match="about another file"):
        merge(data, proposals_of(TABLE, sha256="b" * 64))
