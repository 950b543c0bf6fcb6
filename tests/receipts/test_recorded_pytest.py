"""Any pytest leaves a report, and none runs otherwise than the user wants."""

import shlex
import sys
from pathlib import Path

from panpan.receipts.receipt import TestCounts
from panpan.receipts.recorder import CommandRecorder, StartedCommand
from panpan.receipts.reports.pytest_report import without_report_line
from panpan.system.files.canonical import canonical_path
from tests.receipts.recorded import Workspace, inputs_of, workspace_at

PYTEST = f"{shlex.quote(sys.executable)} -B -m pytest -q -p no:cacheprovider"
PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # a third of the time


def write_tests(work: Workspace) -> None:
    work.write("m.py", "def two():\n    return 2\n")
    work.write(
        "tests/test_m.py",
        "import pytest, sys\nsys.path.insert(0, '.')\nimport m\n"
        "def test_good():\n    assert m.two() == 2\n"
        "def test_bad():\n    assert m.two() == 3\n"
        "@pytest.mark.skip\ndef test_left_out(): ...\n",
    )


def in_short(tests: tuple[TestCounts, ...]) -> list[tuple[str, int, int, int]]:
    return [(one.framework, one.passed, one.failed, one.skipped) for one in tests]


async def test_two_pytests_in_a_line_both_count(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        write_tests(work)
        work.write("Makefile", f"test:\n\t@{PYTEST} -k test_good\n")
        receipt = await work.run(f"{PYTEST} | tail -1; make test", variables=PLUGINS)
    assert in_short(receipt.tests) == [("pytest", 1, 1, 1), ("pytest", 1, 0, 0)]
    assert receipt.kind == "tests"
    assert receipt.exit_code == 0
    assert receipt.tests[0].files == ("tests/test_m.py",)
    assert receipt.tests[0].names == ("tests.test_m::test_bad",)
    assert {"m.py", "tests/test_m.py"} <= inputs_of(receipt).keys()
    assert not (tmp_path / "scratch").exists()


async def test_pytest_of_a_test_does_not_count(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("inner.py", "def test_inner():\n    assert 0\n")
        inner = f"[{sys.executable!r}, '-B', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'inner.py']"
        work.write(
            "test_o.py", f"import subprocess\ndef test_o():\n    assert subprocess.run({inner}).returncode == 1\n"
        )
        receipt = await work.run(PYTEST, variables=PLUGINS)
    assert in_short(receipt.tests) == [("pytest", 1, 0, 0)]
    assert receipt.is_success


async def test_reports_that_are_switched_off_break_nothing(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        write_tests(work)
        receipt = await work.run(f"{PYTEST} -k test_good -p no:junitxml", variables=PLUGINS)
        assert (receipt.exit_code, receipt.tests) == (0, ())
        work.write("pytest.ini", "[pytest]\naddopts = -p no:junitxml\n")
        receipt = await work.run(f"{PYTEST} -k test_good", variables=PLUGINS)
        assert (receipt.exit_code, receipt.tests) == (0, ())


async def test_own_report_of_the_project_is_written_and_read(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        write_tests(work)
        work.write("pytest.ini", "[pytest]\naddopts = --junitxml=out/own.xml\n")
        receipt = await work.run(f"{PYTEST} tests", variables=PLUGINS)
        assert (work.top / "out" / "own.xml").exists()
    assert in_short(receipt.tests) == [("pytest", 1, 1, 1)]


async def test_own_options_of_the_user_stay(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        write_tests(work)
        receipt = await work.run(PYTEST, variables={**PLUGINS, "PYTEST_ADDOPTS": "-k 'test_good or nothing'"})
    assert in_short(receipt.tests) == [("pytest", 1, 0, 0)]


async def test_pytest_without_tests_is_no_test_run(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        write_tests(work)
        receipt = await work.run(f"{PYTEST} -k nothing", variables=PLUGINS)
    assert (receipt.kind, sum(one.ran + one.skipped for one in receipt.tests)) == ("run", 0)


async def variables_for(tmp_path: Path, line: str = "pytest", **changed: object) -> dict[str, str]:
    """Return the variables that a command gets."""
    top = canonical_path(tmp_path)
    recorder = CommandRecorder([top], top / ".scratch", asks_pytest=bool(changed.pop("asks_pytest", True)))
    fields = {"argv": ["sh", "-c", line], "line": line, "cwd": top, "environment": {}, **changed}
    recording = await recorder.begin(StartedCommand(**fields))  # type: ignore[arg-type]
    variables = dict(recording.variables)
    assert bool(variables) == bool(recording.writable)
    recording.abandon()
    await recorder.aclose()
    assert not (top / ".scratch").exists()
    return variables


async def test_report_is_left_out_where_it_may_do_harm(tmp_path: Path) -> None:
    assert await variables_for(tmp_path)
    assert not await variables_for(tmp_path, only_looks=True)
    assert not await variables_for(tmp_path, asks_pytest=False)
    assert not await variables_for(tmp_path, "pytest -p no:junitxml")
    (tmp_path / "run.sh").write_text("exec pytest -p no:junitxml\n")
    assert not await variables_for(tmp_path, "sh run.sh")
    (tmp_path / "run.sh").write_text("exec pytest\n")
    assert await variables_for(tmp_path, "sh run.sh")
    for options in ("--junitxml=a.xml", "--junit-xml a.xml", "-p no:junitxml", "'unfinished"):
        assert not await variables_for(tmp_path, environment={"PYTEST_ADDOPTS": options})
    for name in ("pyproject.toml", "sub/tox.ini", "sub/deep/setup.cfg"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[pytest]\naddopts =\n  -ra\n  --junit-xml=x.xml\n")
        for line in ("pytest sub/deep", "cd sub/deep && pytest", "pytest sub/deep/test_a.py::test_b -q"):
            (tmp_path / "sub" / "deep").mkdir(parents=True, exist_ok=True)
            (tmp_path / "sub" / "deep" / "test_a.py").touch()
            assert not await variables_for(tmp_path, line), (name, line)
        path.unlink()
    assert await variables_for(tmp_path, "pytest sub/deep")


def test_line_that_names_our_report_can_be_left_out() -> None:
    ours = "---- generated xml file: /tmp/a b/1f/report-$PYTEST_CURRENT_TEST.xml ----\n"
    theirs = "- generated xml file: /work/junit.xml -\n"
    assert without_report_line(f"..\n{ours}{theirs}1 passed\n") == f"..\n{theirs}1 passed\n"
    assert without_report_line(ours.replace("$PYTEST_CURRENT_TEST", "")) == ""
    assert without_report_line("1 passed\n") == "1 passed\n"


async def test_odd_signs_in_the_scratch_folder_do_no_harm(tmp_path: Path) -> None:
    for name, counts in ((" 'b' \"c\" ;", [("pytest", 1, 0, 0)]), ("$HOME", [])):
        (tmp_path / name).mkdir()
        async with workspace_at(tmp_path / name) as work:
            work.write("test_a.py", "def test_a(): ...\n")
            receipt = await work.run(PYTEST, variables=PLUGINS)
        assert receipt.is_success
        assert in_short(receipt.tests) == counts
