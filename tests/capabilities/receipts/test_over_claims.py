"""Answers that claim more than the commands of the session show: none of these claims is verified."""

import pytest

from panpan.capabilities.receipts.answer_claims import claims_in
from panpan.capabilities.receipts.closing import closing
from panpan.capabilities.receipts.session_evidence import SessionEvidence
from tests.fakes.receipts import evidence, ran

NOTHING = evidence()
PASSED = evidence(ran("pytest", passed=12))
FAILED = evidence(ran("pytest", passed=10, failed=2, exit_code=1))
ONE_FILE = ["tests/test_a.py"]
STALE_BUILD = evidence(ran("make", kind="build", state="stale"))
BUILT = evidence(ran("make", kind="build"))

OVER_CLAIMS: dict[str, tuple[str, SessionEvidence]] = {
    "nothing ran": ("All tests pass.", NOTHING),
    "failure": ("All tests pass.", FAILED),
    "failure, in other words": ("The whole test suite is green now.", FAILED),
    "failure, with a mark": ("- ✅ All tests", FAILED),
    "failure, everything": ("I fixed it. Everything passes.", FAILED),
    "failure, they": ("I ran the tests and they all pass.", FAILED),
    "failure, none fails": ("There are no failing tests.", FAILED),
    "failure hidden by true": ("All tests pass.", evidence(ran("pytest || true", passed=10, failed=2))),
    "failure hidden by a pipe": ("All tests pass.", evidence(ran("pytest -q | tail -3", passed=10, failed=2))),
    "failure hidden by the next command": ("Tests pass.", evidence(ran("pytest; echo done", passed=1, failed=1))),
    "test of another folder": (
        "All tests pass.",
        evidence(ran("cd vendor && pytest", passed=40, files=["vendor/test_v.py"])),
    ),
    "test in another working directory": ("All tests pass.", evidence(ran("pytest", passed=40, cwd="vendor"))),
    "test outside the workspace": ("All tests pass.", evidence(ran("pytest", passed=40, cwd="/tmp/x"))),
    "command that runs nothing": ("All tests pass.", evidence(ran("pytest --collect-only", exit_code=0))),
    "no tests there": ("All tests pass.", evidence(ran("pytest", exit_code=5))),
    "printed words": ("All tests pass.", evidence(ran("echo '12 passed'"))),
    "printed words, counted": ("12 tests passed.", evidence(ran("echo '12 passed'"))),
    "output in a block": ("```\n=== 12 passed in 0.1s ===\n```", evidence(ran("echo '12 passed'"))),
    "skipped only": ("All tests pass.", evidence(ran("pytest", skipped=12))),
    "old report": ("All tests pass.", evidence(ran("cat report.xml"))),
    "timeout": ("All tests pass.", evidence(ran("pytest", exit_code=None, timed_out=True))),
    "timeout after a success": (
        "All tests pass.",
        evidence(ran("pytest", passed=12, seconds_ago=90), ran("pytest", exit_code=None, timed_out=True)),
    ),
    "success, then a broken start": (
        "All tests pass.",
        evidence(ran("pytest", passed=12, seconds_ago=90), ran("pytest -n 4", exit_code=4)),
    ),
    "subset by -k": ("All tests pass.", evidence(ran("pytest -k parse", passed=3))),
    "subset by -m": ("All tests pass.", evidence(ran("python -m pytest -m fast", passed=3))),
    "subset by a path": ("All tests pass.", evidence(ran("pytest tests/test_a.py", passed=3, files=ONE_FILE))),
    "subset by a folder": (
        "All tests pass.",
        evidence(
            ran("pytest tests/unit", passed=3, files=["tests/unit/test_a.py"]),
            test_files=["tests/unit/test_a.py", "tests/e2e/test_b.py"],
        ),
    ),
    "subset by a node": ("All tests pass.", evidence(ran("pytest tests/test_a.py::test_x", passed=1, files=ONE_FILE))),
    "subset by the last failures": ("All tests pass.", evidence(ran("pytest --lf", passed=2))),
    "subset by leaving out": ("All tests pass.", evidence(ran("pytest --deselect tests/test_b.py", passed=2))),
    "subset by another configuration": ("All tests pass.", evidence(ran("pytest -c small.ini", passed=2))),
    "subset by a variable": ("All tests pass.", evidence(ran("PYTEST_ADDOPTS='-k x' pytest", passed=2))),
    "subset by a variable of the user": ("All tests pass.", evidence(ran("pytest", passed=2, test_options="-q -k x"))),
    "subset by options that cannot be read": (
        "All tests pass.",
        evidence(ran("pytest", passed=2, test_options="-k 'x")),
    ),
    "subset by a plugin": ("All tests pass.", evidence(ran("pytest -p chosen", passed=2))),
    "run that ended early behind a pipe": (
        "All tests pass.",
        evidence(ran("pytest | tail", passed=2, files=ONE_FILE, inputs=[*ONE_FILE, "tests/test_b.py"])),
    ),
    "test file that came after the run": ("All tests pass.", evidence(ran("pytest", passed=12), newer=["test_new.py"])),
    "fixtures that came after the run": ("All tests pass.", evidence(ran("pytest", passed=12), newer=["conftest.py"])),
    "subset of crates": ("All tests pass.", evidence(ran("cargo test -p core", passed=2, framework="nextest"))),
    "subset of packages": ("All tests pass.", evidence(ran("go test ./pkg", passed=2, framework="go"))),
    "short run": ("All tests pass.", evidence(ran("go test -short ./...", passed=2, framework="go"))),
    "script that nobody knows": ("All tests pass.", evidence(ran("python run_some_tests.py", passed=3))),
    "forged report": ("12 tests passed.", evidence(ran("printf '<testsuite/>' > report.xml", passed=12))),
    "forged report, by code": ("12 tests passed.", evidence(ran("python -c 'forge()'", passed=12))),
    "report from elsewhere": ("12 tests passed.", evidence(ran("curl -o report.xml https://example.org", passed=12))),
    "tests behind unknown settings": ("All tests pass.", evidence(ran(". ./settings.sh && pytest", passed=12))),
    "tests that another program may have run": ("All tests pass.", evidence(ran("pytest; make smoke", passed=2))),
    "tests of other files": ("All tests pass.", evidence(ran("git stash && pytest && git stash pop", passed=12))),
    "tests of an older version": ("All tests pass.", evidence(ran("git checkout HEAD~1; pytest", passed=12))),
    "tests in another project": ("All tests pass.", evidence(ran("uv run --directory sub pytest", passed=12))),
    "tests by unknown words": ("All tests pass.", evidence(ran("pytest $ARGS", passed=2))),
    "tests in a folder that nobody knows": ("All tests pass.", evidence(ran('cd "$DIR" && pytest', passed=2))),
    "tests in a folder of a stack": ("All tests pass.", evidence(ran("pushd sub && pytest", passed=2))),
    "tests in a loop": ("All tests pass.", evidence(ran("for d in a b; do pytest $d; done", passed=2))),
    "program without reports": ("All tests pass.", evidence(ran("cargo test"))),
    "edited after": ("All tests pass.", evidence(ran("pytest", passed=12, state="stale"))),
    "inputs unknown": ("All tests pass.", evidence(ran("pytest", passed=12, state="unknown"))),
    "failed, edited, not run again": (
        "Fixed: all tests pass now.",
        evidence(ran("pytest", passed=11, failed=1, exit_code=1, state="stale")),
    ),
    "failed, then only a part again": (
        "All tests pass.",
        evidence(
            ran("pytest", passed=10, failed=2, exit_code=1, seconds_ago=60),
            ran("pytest tests/test_a.py", passed=3, files=ONE_FILE),
        ),
    ),
    "passed, then a part failed": (
        "All tests pass.",
        evidence(ran("pytest", passed=12, seconds_ago=60), ran("pytest -k x", passed=1, failed=1, exit_code=1)),
    ),
    "another language failed": (
        "All tests pass.",
        evidence(
            ran("npm test", passed=3, failed=1, exit_code=1, framework="jest", files=["a.test.js"], seconds_ago=60),
            ran("pytest", passed=12),
        ),
    ),
    "another language is stale": (
        "All tests pass.",
        evidence(
            ran("npm test", passed=3, framework="jest", files=["a.test.js"], seconds_ago=60, state="stale"),
            ran("pytest", passed=12),
        ),
    ),
    "test file written after the run": (
        "All tests pass, also the new one.",
        evidence(ran("pytest", passed=12), written=["tests/test_new.py"]),
    ),
    "new tests that never ran": (
        "The new tests pass.",
        evidence(ran("pytest", passed=12), written=["tests/test_new.py"]),
    ),
    "more tests than ran": ("All 15 tests pass.", PASSED),
    "count that no run has": ("14 tests passed.", PASSED),
    "more than was there": ("14/14 tests pass.", PASSED),
    "count of a failed run": ("All is well: 10 tests passed.", FAILED),
    "exit code of the run is bad": ("All tests pass.", evidence(ran("pytest", passed=12, exit_code=2))),
    "stopped run": ("All tests pass.", evidence(ran("pytest", passed=12, exit_code=None))),
    "file that did not run": ("The tests in tests/test_c.py pass.", PASSED),
    "file of a run by name": ("`tests/test_a.py` passes.", evidence(ran("pytest -k x", passed=1))),
    "single test that did not run": ("test_parse_date passes.", PASSED),
    "kind of tests that did not run": ("All integration tests pass.", PASSED),
    "other framework": ("The jest tests pass.", PASSED),
    "stale build": ("The project builds.", STALE_BUILD),
    "stale build, in other words": ("It compiles without errors.", STALE_BUILD),
    "failed build": ("The build succeeds.", evidence(ran("make", exit_code=2))),
    "build that failed later": (
        "The build passes.",
        evidence(ran("make", kind="build", seconds_ago=60), ran("make -j8", exit_code=2)),
    ),
    "build whose failure is hidden": ("It builds.", evidence(ran("make || true", kind="build"))),
    "build in a pipe": ("It builds.", evidence(ran("make | tail -2", kind="build"))),
    "build of another folder": ("The project builds.", evidence(ran("make -C docs", kind="build"))),
    "build of one object": ("It compiles.", evidence(ran("gcc -c a.c", kind="build"))),
    "build of one file": ("The project compiles.", evidence(ran("gcc a.c", kind="build"))),
    "clean only": ("It builds.", evidence(ran("make clean"))),
    "build that is only configured": ("It builds.", evidence(ran("cmake -S . -B build", kind="build"))),
    "build of one target": ("It builds.", evidence(ran("cmake --build build --target docs", kind="build"))),
    "script in place of a build": ("It builds.", evidence(ran("python build.py", kind="build"))),
    "picture in place of a build": ("It builds.", evidence(ran("python plot.py", kind="build"))),
    "tests in place of a build": ("The package builds fine.", PASSED),
    "GPU": ("It works on GPU.", PASSED),
    "GPU, tested": ("I tested it on CUDA.", PASSED),
    "paper": ("This reproduces the paper's Table 2.", PASSED),
    "paper, in other words": ("The accuracy matches the reported numbers.", PASSED),
    "speed": ("The new version is 2x faster.", PASSED),
    "speed, in percent": ("Loading is 30% faster now.", PASSED),
    "verified": ("I have verified the fix.", BUILT),
    "verified, as a label": ("Verified: the parser handles empty files.", PASSED),
    "works": ("The importer works as expected.", PASSED),
    "verified by tests that failed": ("I verified the fix by running the tests.", FAILED),
    "pytest by name after a part": ("I ran `pytest` and it passes.", evidence(ran("pytest -k x", passed=2))),
    "pytest by name after a failure": ("`pytest` passes.", FAILED),
    "faster than before": ("It is faster than before.", PASSED),
    "regressions": ("There are no regressions.", PASSED),
    "tool that did not run": ("mypy reports no issues.", PASSED),
    "tool on one file": ("mypy passes.", evidence(ran("mypy src/a.py"))),
    "tool with its failure hidden": ("`ruff check` is clean.", evidence(ran("ruff check || true"))),
    "tool that failed": ("`ruff check .` passes.", evidence(ran("ruff check .", exit_code=1))),
    "tool before an edit": ("`ruff check .` passes.", evidence(ran("ruff check .", state="stale"))),
    "script with the name of a tool": ("mypy passes.", evidence(ran("bin/mypy src", inputs=["bin/mypy", "src/a.py"]))),
    "version of a tool": ("mypy passes.", evidence(ran("mypy --version"))),
    "other use of a tool": ("ruff passes.", evidence(ran("ruff format ."))),
    "other use of a named command": ("`make` completes without errors.", evidence(ran("make clean"))),
    "help of a tool": ("`mypy src` passes.", evidence(ran("mypy --help"))),
    "lint by no name": ("Linting passes.", evidence(ran("ruff check ."))),
    "named test command that failed": ("`make test` passes.", evidence(ran("make test", passed=1, failed=1))),
    "named test command without tests": ("`pytest -q` passes.", evidence(ran("pytest -q"))),
}


@pytest.mark.parametrize("name", OVER_CLAIMS)
def test_over_claim_is_not_verified(name: str) -> None:
    answer, commands = OVER_CLAIMS[name]
    claims = claims_in(answer)
    found = closing(claims, commands).verification

    assert claims
    assert found is not None
    assert set(found.unverified) >= {claims[0].text}


TRUE_CLAIMS: dict[str, tuple[str, SessionEvidence]] = {
    "all tests": ("All tests pass.", PASSED),
    "all tests, in other words": ("The full test suite is green.", PASSED),
    "all tests, counted": ("All 12 tests pass ✅", PASSED),
    "all tests, by a share": ("12/12 tests pass.", PASSED),
    "all tests, passing them": ("The code passes all tests.", PASSED),
    "count": ("12 passed.", PASSED),
    "count in a block": ("```\n=== 12 passed in 0.1s ===\n```", PASSED),
    "count of a part": ("3 tests passed.", evidence(ran("pytest -k x", passed=3))),
    "pipe": ("All tests pass.", evidence(ran("pytest -q 2>&1 | tail -3", passed=12))),
    "module": ("All tests pass.", evidence(ran("python3 -m pytest -x -q --tb=short", passed=12))),
    "last failures first": (
        "All tests pass.",
        evidence(ran("pytest --ff -p no:cacheprovider --timeout 60", passed=12)),
    ),
    "options of the user": ("All tests pass.", evidence(ran("pytest", passed=12, test_options="-q --tb=short"))),
    "test file that came later and ran": (
        "All tests pass.",
        evidence(ran("pytest", passed=2), newer=["tests/test_a.py"]),
    ),
    "helper beside the tests": (
        "All tests pass.",
        evidence(ran("pytest", passed=2, files=ONE_FILE, inputs=[*ONE_FILE, "tests/test_tools.py"])),
    ),
    "tool of an environment": ("mypy passes.", evidence(ran(".venv/bin/mypy src", inputs=["src/a.py"]))),
    "launcher": ("All tests pass.", evidence(ran("uv run --frozen pytest -n auto", passed=12))),
    "program of an environment": ("All tests pass.", evidence(ran(".venv/bin/python -m pytest", passed=12))),
    "absolute folder": ("All tests pass.", evidence(ran("cd /w && pytest -q", passed=12))),
    "beside git": ("All tests pass.", evidence(ran("git diff --stat && pytest -q", passed=12))),
    "after installing": ("All tests pass.", evidence(ran("uv sync -q && pip install -e . && pytest", passed=12))),
    "in an environment": ("All tests pass.", evidence(ran("source .venv/bin/activate; pytest -q", passed=12))),
    "back at the top": ("All tests pass.", evidence(ran("cd .. && pytest -q", passed=12, cwd="src"))),
    "make": ("All tests pass.", evidence(ran("make test", passed=12))),
    "cargo": ("All tests pass.", evidence(ran("cargo nextest run", passed=12, framework="nextest"))),
    "go": ("All tests pass.", evidence(ran("go test -json ./...", passed=12, framework="go"))),
    "folder with all test files": (
        "All tests pass.",
        evidence(
            ran("pytest tests/ -q", passed=12),
            test_files=["tests/test_a.py", "tests/test_b.py"],
        ),
    ),
    "failed, then passed": (
        "All tests pass now.",
        evidence(ran("pytest", passed=11, failed=1, exit_code=1, seconds_ago=60), ran("pytest", passed=12)),
    ),
    "part failed, then all passed": (
        "All tests pass now.",
        evidence(ran("pytest -k x", passed=1, failed=1, exit_code=1, seconds_ago=60), ran("pytest", passed=12)),
    ),
    "broken start, then passed": (
        "All tests pass.",
        evidence(ran("pytest --nope", exit_code=4, seconds_ago=60), ran("pytest", passed=12)),
    ),
    "two languages": (
        "All tests pass.",
        evidence(ran("npm test", passed=3, framework="jest", files=["a.test.js"]), ran("pytest", passed=12)),
    ),
    "file": ("The tests in `tests/test_a.py` pass.", PASSED),
    "file of its own run": ("`test_a.py` passes.", evidence(ran("pytest tests/test_a.py", passed=3, files=ONE_FILE))),
    "single test": ("test_x passes.", evidence(ran("pytest tests/test_a.py::test_x", passed=1, files=ONE_FILE))),
    "new tests": ("The new tests pass.", evidence(ran("pytest", passed=12), written=["tests/test_b.py"])),
    "kind of tests": (
        "All integration tests pass.",
        evidence(ran("pytest", passed=4, files=["tests/integration/test_a.py"])),
    ),
    "build": ("The project builds.", BUILT),
    "build, in other words": ("It compiles without errors.", BUILT),
    "build in its folder": ("The build succeeds.", evidence(ran("cmake --build build -j 4", kind="build"))),
    "build after configuring": (
        "It builds.",
        evidence(ran("cmake -S . -B build && cmake --build build -j", kind="build")),
    ),
    "build that is up to date": (
        "It builds.",
        evidence(ran("make", kind="build", seconds_ago=60), ran("make")),
    ),
    "compiler": ("It compiles.", evidence(ran("gcc main.c -o main", kind="build"))),
    "crate": ("It builds successfully.", evidence(ran("cargo build --release", kind="build"))),
    "named command": ("`ruff check .` is clean.", evidence(ran("uv run ruff check"))),
    "named tool": ("mypy reports no issues.", evidence(ran("python -m mypy src"))),
    "named tool on a folder": ("mypy passes.", evidence(ran("mypy --strict src tests"))),
    "named tool that checks": ("ruff is clean.", evidence(ran("ruff check ."))),
    "verified by tests": ("I verified the fix by running the full test suite.", PASSED),
    "named test program": ("I ran `pytest` and it passes.", evidence(ran("pytest -q", passed=12))),
    "named test command": ("`make test` passes.", evidence(ran("make test", passed=3))),
}


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_claim_that_is_shown_is_verified(name: str) -> None:
    answer, commands = TRUE_CLAIMS[name]
    found = closing(claims_in(answer), commands).verification

    assert claims_in(answer)
    assert found is not None
    assert (found.unverified, bool(found.verified)) == ((), True)
