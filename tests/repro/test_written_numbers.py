"""Numbers as people write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.claims.written_number import read_number, shown_apart, shown_number

FINITE = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=4)


@pytest.mark.parametrize(
    ("text", "value", "step"),
    [
        ("83.1", "83.1", "0.1"),
        (" 3.50 ", "3.50", "0.01"),
        ("1,234.5", "1234.5", "0.1"),
        ("1,234", "1234", "1"),
        ("0,831", "0.831", "0.001"),
        ("83,1", "83.1", "0.1"),
        ("1.234,5", "1234.5", "0.1"),
        ("12\u202f345", "12345", "1"),
        ("1_000", "1000", "1"),
        ("83.1 %", "83.1", "0.1"),
        ("1e-3", "0.001", "0.001"),
        ("1.20E+03", "1.20e3", "10"),
        ("\u22120.5", "-0.5", "0.1"),
        ("+3", "3", "1"),
        (".5", "0.5", "0.1"),
        ("5.", "5", "1"),
        ("1.2 \u00d7 10\u207b\u00b3", "1.2e-3", "1e-4"),
        ("1.2x10^{-3}", "1.2e-3", "1e-4"),
        ("83.1 ± 0.3 %", "83.1", "0.1"),
        ("83.1(3)", "83.1", "0.1"),
    ],
)
def test_number_is_read_with_its_last_digit(text: str, value: str, step: str) -> None:
    found = read_number(text)
    assert found is not None
    assert (found.value, found.step) == (Decimal(value), Decimal(step))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "abc",
        "nan",
        "inf",
        "12 345",
        "1,23,4",
        "3 of 5",
        "10k",
        "83.1 84.2",
        "1e999",
        "1" * 301,
        "\u0663",
        "0x10",
    ],
)
def test_text_that_is_not_one_number_is_none(text: str) -> None:
    assert read_number(text) is None


@given(FINITE, st.sampled_from(["f", ",f", "e"]))
def test_number_survives_being_written(value: Decimal, form: str) -> None:
    found = read_number(format(value, form))
    assert found is not None
    assert found.value == value


@given(st.floats(1e-200, 1e200), st.sampled_from([1, -1]))
def test_float_survives_being_printed(size: float, sign: int) -> None:
    found = read_number(repr(sign * size))
    assert found is not None
    assert float(found.value) == sign * size


@given(st.text(max_size=40) | st.text("0123456789.,e-+ %()±_'x*^", max_size=40))
def test_reading_any_text_ends_in_a_finite_number_or_none(text: str) -> None:
    found = read_number(text)
    assert found is None or (found.value.is_finite() and found.step > 0)


@pytest.mark.parametrize(
    ("value", "claimed", "shown"),
    [
        ("83.123456", "83.1", "83.123"),
        ("83", "83.10", "83.00"),
        ("84.5", "84", "84.5"),
        ("1234567890123", "12", "1.23457e+12"),
        ("0.00000000012", "1.2e-10", "1.2e-10"),
        ("0", "0.0", "0.0"),
    ],
)
def test_measured_number_is_shown_like_the_claimed_one(value: str, claimed: str, shown: str) -> None:
    like = read_number(claimed)
    assert like is not None
    assert shown_number(Decimal(value), like) == shown


@pytest.mark.parametrize(
    ("values", "each", "shown"),
    [
        (["0.9800000000000001"], False, ["0.9800000000000001"]),
        (["0.980004", "0.97"], False, ["0.97", "0.980004"]),
        (["0.98"], True, ["0.98"]),
        (["0.8681318681318682", "0.8681318681318683"], False, ["0.8681"]),
        (["0.8681318681318682", "0.8681318681318683"], True, ["0.8681318681318682", "0.8681318681318683"]),
    ],
)
def test_digits_tell_a_number_from_the_claimed_one(values: list[str], each: bool, shown: list[str]) -> None:
    like = read_number("0.98")
    assert like is not None
    assert shown_apart(map(Decimal, values), like, each=each) == shown
