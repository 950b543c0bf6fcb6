"""Run tests in parallel, and failed ones again alone: the command of `make test`.

    .venv/bin/python -m scripts.run_tests -n 3 [OTHER ARGUMENTS OF PYTEST]

A test that fails beside others and passes alone does not fail the run, and the run ends with a list of such tests:
`flaky: …`. Anything else that goes wrong fails the run without a second try: a crash, a file that cannot be collected,
an error of pytest, no tests at all, or more failures than `MOST_FLAKY`.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

MOST_FLAKY = 10
"""Tests that may fail in the parallel run; more are no accident."""

PHASES = ("setup", "call", "teardown")
"""Phases of a test that ran. The report of a crashed worker names none of them."""


class Failures:
    """A plug-in of pytest that keeps the failures of a run.

    Attributes:
        tests: Node ids of the tests that failed, in the order of their reports.
        is_broken: True if anything but a test failed.
    """

    def __init__(self) -> None:
        self.tests: list[str] = []
        self.is_broken = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test that failed; called once for each phase of it."""
        if report.failed:
            self.is_broken |= report.when not in PHASES
            if report.nodeid not in self.tests:
                self.tests.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be collected."""
        self.is_broken |= report.failed

    def pytest_internalerror(self) -> None:
        """Note an error of pytest or of a plug-in."""
        self.is_broken = True


def passes_alone(tests: Sequence[str]) -> bool:
    """Return True if every one of the tests runs and passes in a process that runs nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", f"--junitxml={report}", *tests]
        if subprocess.run(command, check=False).returncode != pytest.ExitCode.OK:
            return False
        (suite,) = ElementTree.parse(report).getroot()
    return (suite.get("tests"), suite.get("skipped")) == (str(len(tests)), "0")


def result(code: int, failures: Failures, alone: Callable[[Sequence[str]], bool]) -> int:
    """Return the exit code of a run, after its failures ran alone if they may.

    Args:
        code: The exit code of the parallel run.
        failures: Failures of that run.
        alone: Runs tests by their ids and returns True if all pass.
    """
    tests = failures.tests
    if code != pytest.ExitCode.TESTS_FAILED or failures.is_broken or not 0 < len(tests) <= MOST_FLAKY:
        return code
    sys.stdout.write(f"{len(tests)} failed beside other tests and run once more, alone:\n")
    sys.stdout.flush()
    if not alone(tests):
        return code
    sys.stdout.write("".join(f"flaky: {test}\n" for test in tests))
    return pytest.ExitCode.OK


def main(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments and return the exit code."""
    failures = Failures()
    code = pytest.main(list(arguments), plugins=[failures])
    return result(code, failures, passes_alone)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
