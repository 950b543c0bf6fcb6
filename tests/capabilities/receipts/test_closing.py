"""The closing line: results of commands in few words, and claims that nothing shows."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from panpan.capabilities.receipts.answer_claims import claims_in
from panpan.capabilities.receipts.closing import closing
from panpan.capabilities.receipts.descriptions import spoken_age
from panpan.capabilities.receipts.session_evidence import SessionEvidence
from tests.fakes.receipts import NOW, Ran, evidence, ran


def line(answer: str, commands: SessionEvidence, told: Sequence[str] = ()) -> str:
    found = closing(claims_in(answer), commands, told).verification
    return "" if found is None else found.line


def test_line_names_results_failures_stale_ones_and_claims() -> None:
    commands = evidence(
        ran("make", kind="build", state="stale", seconds_ago=300),
        ran("npm test", passed=3, failed=1, exit_code=1, framework="jest", files=["a.test.js"], seconds_ago=90),
        ran("pytest", passed=12, skipped=1),
    )

    assert line("It works on GPU.", commands) == (
        "verified: 12 tests passed, 1 skipped (pytest, 3 s ago) · failed: 1 of 4 tests (jest, 1 min ago) · "
        'stale: build (make; src/a.py changed since) · unverified: "works on GPU"'
    )


def test_answer_without_claims_and_tests_has_no_line() -> None:
    assert line("I renamed the variable.", evidence(ran("ls"), ran("sed -i s/a/b/ x.py"))) == ""


def test_results_of_an_earlier_turn_are_named_only_for_a_claim() -> None:
    commands = evidence(ran("pytest", passed=12, is_of_turn=False))

    assert line("Done.", commands) == ""
    assert line("All tests pass.", commands) == "verified: 12 tests passed (pytest, 3 s ago)"


def test_told_result_that_became_stale_is_named_once() -> None:
    before = ran("pytest", passed=12)
    told = closing((), evidence(before)).holding
    now = evidence(ran("pytest", passed=12, state="stale", is_of_turn=False))
    after = closing((), now, told)

    assert after.verification is not None
    assert after.verification.line == "stale: 12 tests (pytest; src/a.py changed since)"
    assert line("Done.", now, [*after.holding]) == ""


def test_part_of_the_tests_is_named_with_its_words() -> None:
    commands = evidence(ran("pytest tests/test_a.py -q", passed=1, files=["tests/test_a.py"]))

    assert line("All tests pass.", commands) == (
        'verified: 1 test passed (pytest tests/test_a.py -q, 3 s ago) · unverified: "All tests pass"'
    )


def test_part_is_named_without_launchers_and_pipes() -> None:
    commands = evidence(ran("cd /w && /opt/env/bin/python3 -m pytest -k x 2>&1 | tail -3", passed=1))

    assert line("", commands) == "verified: 1 test passed (pytest -k x, 3 s ago)"


def test_failed_part_is_not_named_once_all_tests_passed() -> None:
    commands = evidence(ran("pytest -k x", failed=1, exit_code=1, seconds_ago=60), ran("pytest", passed=12))

    assert line("", commands) == "verified: 12 tests passed (pytest, 3 s ago)"


def test_test_files_of_this_session_are_named() -> None:
    commands = evidence(ran("pytest", passed=12), written=["tests/test_b.py", "src/a.py"])

    assert line("", commands) == (
        "verified: 12 tests passed (pytest, 3 s ago, 1 of 2 test files written in this session)"
    )


def test_tests_in_files_of_this_session_are_counted() -> None:
    by_file = {"tests/test_a.py": 7, "tests/test_b.py": 5}
    commands = [
        evidence(ran("pytest", passed=12, passed_in=by_file), written=own)
        for own in (["tests/test_b.py"], list(by_file))
    ]

    assert line("", commands[0]) == "verified: 12 tests passed (pytest, 3 s ago, 5 of them in files of this session)"
    assert line("", commands[1]) == "verified: 12 tests passed (pytest, 3 s ago, all of them in files of this session)"


def test_expected_values_of_this_session_are_named() -> None:
    commands = evidence(
        ran("pytest", passed=2, files=["tests/test_b.py"], inputs=["tests/expected.json", "src/a.py"]),
        written=["tests/expected.json", "src/a.py", "tests/other.json"],
    )

    assert line("", commands) == (
        "verified: 2 tests passed (pytest, 3 s ago, tests/expected.json written in this session)"
    )


def test_test_files_that_the_session_removed_are_named() -> None:
    commands = evidence(ran("pytest", passed=12), removed=["tests/test_old.py"])

    assert (
        line("", commands) == "verified: 12 tests passed (pytest, 3 s ago, tests/test_old.py removed in this session)"
    )


def test_programs_of_this_session_are_named() -> None:
    commands = evidence(ran("python scripts/report.py", passed=2, files=[]), written=["scripts/report.py"])

    assert line("", commands).endswith("scripts/report.py written in this session)")


def test_module_in_place_of_pytest_is_named() -> None:
    commands = evidence(ran("python -m pytest", passed=2, inputs=["pytest.py"]), written=["pytest.py"])

    assert line("", commands) == "verified: 2 tests passed (pytest, 3 s ago, pytest.py written in this session)"


def test_new_test_file_that_a_run_did_not_see_is_named() -> None:
    commands = evidence(ran("pytest", passed=2), written=["tests/test_new.py"])

    assert line("", commands) == "verified: 2 tests passed (pytest without tests/test_new.py, 3 s ago)"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (ran("pytest", exit_code=4), "failed: tests with exit code 4 (pytest, 3 s ago)"),
        (ran("pytest", exit_code=None, timed_out=True), "failed: tests timed out (pytest, 3 s ago)"),
        (ran("make", exit_code=2), "failed: build with exit code 2 (make, 3 s ago)"),
        (ran("pytest", passed=3, exit_code=1), "failed: tests with exit code 1 (pytest, 3 s ago)"),
        (ran("pytest | grep nothing", exit_code=1), ""),
        (ran("make | grep error", exit_code=1), ""),
        (ran("pytest", skipped=3), ""),
    ],
)
def test_failure_is_told_where_it_is_certain(command: Ran, said: str) -> None:
    assert line("", evidence(command)) == said


def test_unknown_inputs_are_told() -> None:
    assert line("", evidence(ran("pytest", passed=1, state="unknown"))) == (
        "stale: 1 test (pytest; its inputs are not known)"
    )


def test_long_command_and_many_results_are_cut() -> None:
    commands = evidence(*(ran(f"pytest -k {'long_' * 12}{number}", passed=1) for number in range(6)))
    said = line("", commands)

    assert said.count("1 test passed") == 4
    assert said.endswith("and 2 more")
    assert "pytest -k long_long_long_long_long_long_long_lo…" in said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "just now"),
        (0.4, "just now"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (7_300, "2 h ago"),
        (200_000, "2 d ago"),
    ],
)
def test_age_is_spoken_in_one_unit(seconds: float, said: str) -> None:
    assert spoken_age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == said


def test_age_of_an_unreadable_time_is_unknown() -> None:
    assert spoken_age("yesterday", NOW) == "at an unknown time"
