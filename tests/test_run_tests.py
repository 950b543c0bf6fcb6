"""The test command gives a failed test one more try, alone, and takes nothing else for an accident."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.run_tests import MOST_FLAKY, Failures, result

SCRIPT = Path(__file__).parents[1] / "scripts" / "run_tests.py"
FAILS_BESIDE_OTHERS = "assert 'PYTEST_XDIST_WORKER' not in os.environ"
TESTS = f"""
import os

import pytest


@pytest.mark.parametrize("text", ["a::b [c]"])
def test_flaky(text):
    {FAILS_BESIDE_OTHERS}


@pytest.fixture
def leftover():
    yield
    {FAILS_BESIDE_OTHERS}


def test_flaky_fixture(leftover):
    pass


def test_good():
    pass
"""
FLAKY = ["flaky: test_it.py::test_flaky[a::b [c]]", "flaky: test_it.py::test_flaky_fixture"]


class Alone:
    """Runs nothing, and says that tests pass alone, or not."""

    def __init__(self, *, passes: bool) -> None:
        self.passes = passes
        self.runs: list[list[str]] = []

    def __call__(self, tests: Sequence[str]) -> bool:
        self.runs.append(list(tests))
        return self.passes


def report(test: str, when: str = "call", outcome: str = "failed") -> pytest.TestReport:
    return pytest.TestReport(test, (test, 0, test), {}, outcome, None, when)  # type: ignore[arg-type]


def failures_of(*reports: pytest.TestReport) -> Failures:
    failures = Failures()
    for one in reports:
        failures.pytest_runtest_logreport(one)
    return failures


@pytest.mark.parametrize("passes", [True, False])
def test_result_is_what_failures_do_alone(passes: bool, capsys: pytest.CaptureFixture[str]) -> None:
    alone = Alone(passes=passes)
    failures = failures_of(report("a"), report("b", "setup"), report("c", outcome="passed"), report("a", "teardown"))

    code = result(1, failures, alone)

    assert code == (0 if passes else 1)
    assert alone.runs == [["a", "b"]]
    assert capsys.readouterr().out.splitlines()[1:] == (["flaky: a", "flaky: b"] if passes else [])


@pytest.mark.parametrize("code", [0, 2, 3, 4, 5])
def test_result_of_any_other_end_is_final(code: int) -> None:
    alone = Alone(passes=True)

    assert result(code, failures_of(report("a")), alone) == code
    assert alone.runs == []


def test_result_of_a_failed_run_without_failed_tests_is_final() -> None:
    assert result(1, Failures(), Alone(passes=True)) == 1


@pytest.mark.parametrize(("count", "code"), [(MOST_FLAKY, 0), (MOST_FLAKY + 1, 1)])
def test_result_of_too_many_failures_is_final(count: int, code: int) -> None:
    assert result(1, failures_of(*(report(str(n)) for n in range(count))), Alone(passes=True)) == code


def test_result_of_a_crash_is_final() -> None:
    assert result(1, failures_of(report("a"), report("b", "???")), Alone(passes=True)) == 1


def test_result_of_an_internal_error_is_final() -> None:
    failures = failures_of(report("a"))

    failures.pytest_internalerror()

    assert result(1, failures, Alone(passes=True)) == 1


def run_in(folder: Path, **files: str) -> subprocess.CompletedProcess[str]:
    """Run the command on the tests of a new folder, with one worker."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload -p xdist -p no:cacheprovider\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PANPAN", "COV"))}
    return subprocess.run(
        [sys.executable, SCRIPT, "-q", "-n", "1"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_command_passes_and_names_tests_that_pass_alone(tmp_path: Path) -> None:
    ended = run_in(tmp_path, it=TESTS)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-2:] == FLAKY


def test_command_fails_if_a_test_fails_alone(tmp_path: Path) -> None:
    ended = run_in(tmp_path, it=TESTS, bad="def test_bad():\n    assert False\n")

    assert ended.returncode == 1
    assert "1 failed, 2 passed" in ended.stdout
    assert "flaky: " not in ended.stdout


def test_command_fails_if_a_test_is_skipped_alone(tmp_path: Path) -> None:
    skipped = (
        "import os\n\nimport pytest\n\n\ndef test_it():\n"
        "    if 'PYTEST_XDIST_WORKER' not in os.environ:\n        pytest.skip('alone')\n    assert False\n"
    )

    assert run_in(tmp_path, it=skipped).returncode == 1


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"bad": "import os\n\ndef test_crash():\n    os._exit(0)\n"}, 1),
        ({"bad": "import nothing_of_this_name\n"}, 1),
        ({"bad": ""}, 5),
    ],
    ids=["crash", "collection", "none"],
)
def test_command_fails_without_a_second_run(tmp_path: Path, files: dict[str, str], code: int) -> None:
    flaky = {"it": TESTS} if code == 1 else {}

    ended = run_in(tmp_path, **flaky, **files)

    assert ended.returncode == code, ended.stdout
    assert "run once more" not in ended.stdout
