"""Student's distribution without scipy, and the interval for a further run."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.checking.evidence import expected_interval, t_quantile

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975
TABLE = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 15: 2.131,
    20: 2.086, 29: 2.045, 30: 2.042, 40: 2.021, 60: 2.000, 80: 1.990, 99: 1.984,
}  # fmt: skip
DECIMALS = st.lists(st.decimals(-1000, 1000, places=3, allow_nan=False), max_size=9)


@pytest.mark.parametrize(("freedom", "quantile"), TABLE.items())
def test_quantile_is_that_of_the_table(freedom: int, quantile: float) -> None:
    assert round(t_quantile(freedom), 3) == quantile


def test_quantile_of_many_runs_is_the_normal_one() -> None:
    assert t_quantile(100_001) == pytest.approx(1.959964, abs=5e-5)


def test_interval_is_the_mean_and_t_times_s() -> None:
    # mean 3, s = sqrt(2.5), t(4) = 2.776445: 2.776445 * 1.581139 * sqrt(1.2) = 4.808943
    low, high = expected_interval([Decimal(number) for number in (1, 2, 3, 4, 5)]) or (0, 0)
    assert float(low) == pytest.approx(3 - 4.808943, abs=1e-5)
    assert float(high) == pytest.approx(3 + 4.808943, abs=1e-5)


def test_interval_of_two_is_between_them_and_one_has_none() -> None:
    assert expected_interval([Decimal(2), Decimal(1)]) == (1, 2)
    assert expected_interval([Decimal(2)]) is None


@given(DECIMALS)
def test_interval_holds_the_mean_and_ignores_the_order(values: list[Decimal]) -> None:
    found = expected_interval(values)
    assert found == expected_interval(values[::-1])
    if found is not None:
        mean = sum(values) / len(values)
        assert found[0] <= mean + Decimal("1e-20")
        assert mean - Decimal("1e-20") <= found[1]
