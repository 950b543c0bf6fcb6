"""Figures of results: rates, intervals and distributions."""

from typing import Any

import pytest

from panpan.batch.reporting.figures import Rate, Spread, rate_of, rates_by_axis, spread_of, total_spent
from panpan.batch.store.records import Result, Spent


def result(status: Any, number: int = 1, **fields: Any) -> Result:
    given = {"task_id": "0" * 16, "task": "table", "ended_by": "answer", **fields}
    return Result(status=status, attempt=number, **given)


@pytest.mark.parametrize(
    ("passed", "judged", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17, and the closed form for 0 and all: z² / (n + z²)
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (20, 20, 0.8389, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_interval_is_the_one_of_wilson(passed: int, judged: int, low: float, high: float) -> None:
    assert Rate(passed, judged).interval == pytest.approx((low, high), abs=0.00006)


def test_words_of_a_rate_name_counts_share_and_interval() -> None:
    assert Rate(81, 263).words == "81 of 263, 31 % (26-37 %)"
    assert Rate(0, 0).words == "not judged"


def test_rate_counts_only_attempts_that_were_judged() -> None:
    assert rate_of(map(result, ["passed", "failed", "error", "cancelled", "done"])) == Rate(1, 2)


def test_rates_by_axis_keep_the_order_and_have_the_tasks() -> None:
    results = [
        result("passed", task="b", axes={"seed": 2, "fast": True}),
        result("failed", task="a", axes={"seed": 1, "fast": True}),
        result("passed", task="a", axes={"seed": 2, "fast": True}),
    ]

    rates = rates_by_axis(results)

    assert rates == {
        "task": {"b": Rate(1, 1), "a": Rate(1, 2)},
        "seed": {"2": Rate(2, 2), "1": Rate(0, 1)},
        "fast": {"true": Rate(2, 3)},
    }
    assert [*rates["seed"]] == ["2", "1"]


def test_rates_by_axis_are_empty_without_a_verdict() -> None:
    assert rates_by_axis([result("done"), result("error")]) == {}


def test_bins_hold_each_value_once() -> None:
    spread = spread_of([4.0, None, 0.0, 1.0, 2.0, 3.0])

    assert spread is not None
    assert spread.quartiles == (1.0, 2.0, 3.0)
    assert spread.bins(2) == [(0.0, 2.0, 2), (2.0, 4.0, 3)]
    assert Spread([7.0, 7.0]).bins(3) == [(7.0, 7.0, 2)]
    assert Spread([7.0]).quartiles == (7.0, 7.0, 7.0)
    assert spread_of([None]) is None


def test_total_is_unknown_if_one_price_is() -> None:
    known, unknown = result("passed", spent=Spent(usd=1.5, tokens=3)), result("passed", spent=Spent(usd=None, tokens=4))

    assert total_spent([known, known]) == Spent(usd=3.0, tokens=6)
    assert total_spent([known, unknown]) == Spent(usd=None, tokens=7)
