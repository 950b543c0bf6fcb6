"""Numbers in cells of tables: a cell is read only if all of it is understood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.claims.written_number import read_number
from panpan.repro.papers.cell_numbers import CellNumber, is_several_numbers, read_cell, uses_decimal_comma


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("83.1", CellNumber("83.1")),
        ("83.10", CellNumber("83.10")),
        ("83.1 ± 0.3", CellNumber("83.1", spread="0.3")),
        ("83.1±0.3", CellNumber("83.1", spread="0.3")),
        ("83.1 +/- .3", CellNumber("83.1", spread=".3")),
        ("83.1 (±0.3)", CellNumber("83.1", spread="0.3")),
        ("(83.1 ± 0.3)%", CellNumber("83.1", "%", "0.3")),
        ("83.1_{±0.3}", CellNumber("83.1", spread="0.3")),
        ("83.1_{0.3}", CellNumber("83.1", aside="0.3")),
        ("83.1 (0.3)", CellNumber("83.1", aside="0.3")),
        ("83.1 [82.5, 83.7]", CellNumber("83.1")),
        ("83.1_{+0.4}", CellNumber("83.1")),
        ("83.1%", CellNumber("83.1", "%")),
        ("1,234.5", CellNumber("1,234.5")),
        (".512", CellNumber(".512")),
        ("+1.5", CellNumber("1.5")),
        ("\u22120.5", CellNumber("-0.5")),
        ("\u20130.5", CellNumber("-0.5")),
        ("1.2 \u00d7 10^{\u22123}", CellNumber("1.2e-3")),
        ("1.2 \u00d7 10^{\u22123*}", CellNumber("1.2e-3")),
        ("10^{4}", CellNumber("1e4")),
        ("3.4e-4", CellNumber("3.4e-4")),
        ("92.0*", CellNumber("92.0")),
        ("92.0†‡", CellNumber("92.0")),
        ("1.234*** (0.012)", CellNumber("1.234", aside="0.012")),
        ("82.7^{1}", CellNumber("82.7")),
        ("82.7^{a,b}", CellNumber("82.7")),
        ("**83.1**", CellNumber("83.1")),
        ("25.6M", CellNumber("25.6", "M")),
        ("14.8 ms", CellNumber("14.8", "ms")),
        ("$3.50", CellNumber("3.50", "$")),
    ],
)
def test_cell_is_read_whole(cell: str, number: CellNumber) -> None:
    assert read_cell(cell) == number


@pytest.mark.parametrize(
    "cell",
    ["", "-", "n/a", "ResNet-50", "12/15", "12 of 15", "45.2 / 46.1", "< 0.001", "~3", "3.1 (", "1.2.3", "83.1 84.1",
     "2^{10}", "10^{51}", "1.5 \u00d7 10^{\u221251}", "(a)", "3 [1, 2", "8" * 100, "١٢"],
)  # fmt: skip
def test_cell_that_is_not_one_number_is_none(cell: str) -> None:
    assert read_cell(cell) is None


@pytest.mark.parametrize("cell", ["45.2 / 46.1", "< 0.001", "12/15"])
def test_cell_of_several_numbers_is_told(cell: str) -> None:
    assert is_several_numbers(cell)


@pytest.mark.parametrize("cell", ["", "-", "83.1", "ResNet-50", "X86"])
def test_cell_with_words_or_one_number_is_not_told(cell: str) -> None:
    assert not is_several_numbers(cell)


def test_decimal_comma_is_known_by_the_table() -> None:
    assert uses_decimal_comma(["83,1", "1.234,5"])
    assert uses_decimal_comma(["0,512", "0,498"])
    assert not uses_decimal_comma(["1,234", "5,678"])
    assert not uses_decimal_comma(["83.1", "1,234.5"])
    assert read_cell("1.234,5", has_decimal_comma=True) == CellNumber("1234.5")


@given(st.text(st.sampled_from("0123456789.,-+±()[]%eE ^_{}*†x/msK\u2212\u00d7"), max_size=16))
def test_numbers_of_cells_are_numbers_for_the_judge(cell: str) -> None:
    number = read_cell(cell)
    if number is not None:
        assert read_number(number.value) is not None
        assert not number.spread or float(number.spread.replace(",", "")) is not None
