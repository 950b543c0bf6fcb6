"""Lines of `go test -json` are counted from the beginning of each test to the end of its package."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from panpan.receipts.receipt import TestCounts
from panpan.receipts.reports.test_reports import GoTestOutput


def line(action: str, test: str = "", package: str = "example.org/p") -> bytes:
    event = {"Time": "2026-11-30T05:57:53Z", "Action": action, "Package": package, **({"Test": test} if test else {})}
    return json.dumps(event).encode() + b"\n"


def counts_of(*parts: bytes) -> TestCounts | None:
    output = GoTestOutput()
    for part in parts:
        output.feed(part)
    return output.counts()


def test_outcomes_of_tests_are_counted() -> None:
    parts = [line("start")]
    for test, outcome in (("TestA", "pass"), ("TestB", "fail"), ("TestB/sub", "fail"), ("TestC", "skip")):
        parts += [line("run", test), line("output", test), line(outcome, test)]
    counts = counts_of(*parts, line("fail"))
    assert counts is not None
    assert (counts.passed, counts.failed, counts.skipped) == (1, 2, 1)
    assert counts.names == ("example.org/p.TestB", "example.org/p.TestB/sub")


def test_package_that_does_not_build_has_failed() -> None:
    counts = counts_of(line("start"), line("fail"))
    assert counts is not None
    assert (counts.passed, counts.failed) == (0, 1)


def test_package_without_an_end_counts_for_nothing() -> None:
    assert counts_of(line("run", "TestA"), line("pass", "TestA")) is None


def test_outcome_without_a_beginning_counts_for_nothing() -> None:
    assert counts_of(line("pass", "TestA"), line("pass")) is None


def test_other_output_counts_for_nothing() -> None:
    assert counts_of(b"12 passed\n", b'{"Action":', b"[1]\n", b'{"Action": 1, "Package": 2}\n', b"ok  p 0.1s\n") is None


def test_lines_of_an_earlier_run_count_for_nothing() -> None:
    output = GoTestOutput(datetime(2026, 11, 30, 5, 58, tzinfo=UTC))
    output.feed(line("run", "TestA") + line("pass", "TestA") + line("pass"))
    assert output.counts() is None


def test_lines_of_this_run_count() -> None:
    output = GoTestOutput(datetime(2026, 11, 30, 5, 57, 53, 900_000, tzinfo=UTC))
    output.feed(line("run", "TestA") + line("pass", "TestA") + line("pass"))
    counts = output.counts()
    assert counts is not None
    assert counts.passed == 1


@given(st.lists(st.integers(1, 400), max_size=10))
def test_parts_of_the_output_make_no_difference(cuts: list[int]) -> None:
    whole = b"noise\n" + line("run", "TestA") + line("pass", "TestA") + line("pass")
    parts, rest = [], whole
    for cut in cuts:
        parts.append(rest[:cut])
        rest = rest[cut:]
    assert counts_of(*parts, rest) == counts_of(whole)
