"""A receipt of a session has the counts of the tests that ran, whatever the line that ran them."""

import shlex
import sys
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.receipts.session_receipts import SessionReceipt
from panpan.types.events import Event, TurnEnded
from tests.capabilities.plan_mode.test_plan_sessions import DONE, Place, allow
from tests.capabilities.receipts.receipt_fixtures import bash, place_in, receipts_of, submit

TESTS = "def test_good():\n    pass\n\ndef test_bad():\n    assert not 'bad'\n"
PYTEST = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    (place.root / "workspace" / "test_them.py").write_text(TESTS)
    return place


async def receipt_of(place: Place, line: str, **arguments: object) -> SessionReceipt:
    async with place.open(bash(line, **arguments), DONE, ask=allow) as session:
        await submit(session)
        (one,) = await receipts_of(session)
    return one


async def test_receipt_counts_tests_behind_a_pipe(place: Place) -> None:
    one = await receipt_of(place, f"export X=1; {PYTEST} | tail -1")

    (counts,) = one.receipt.tests
    assert (counts.passed, counts.failed, counts.files) == (1, 1, ("test_them.py",))
    assert (one.receipt.kind, one.receipt.exit_code, one.receipt.inputs_are) == ("tests", 0, "opened")
    assert "test_them.py" in [file.path for file in one.receipt.inputs]


async def test_line_names_test_files_that_came_or_went_after_the_run(place: Place) -> None:
    workspace = place.root / "workspace"
    (workspace / "test_old.py").write_text("")
    await anyio.run_process(["git", "init", "-q", "."], cwd=workspace)
    lines: list[str] = []

    def take(event: Event) -> None:
        if isinstance(event, TurnEnded) and event.verification is not None:
            lines.append(event.verification.line)

    good = "rm test_old.py; echo 'def test(): 1' >test_them.py"
    async with place.open(bash(good), bash(PYTEST), DONE, 'text = "All tests pass."', ask=allow) as session:
        await submit(session, take)
        (workspace / "test_new.py").write_text("def test_new(): assert 0\n")
        await submit(session, take)

    assert "1 test passed (pytest" in lines[0]
    assert "test_old.py removed in this session" in lines[0]
    assert "without test_new.py" in lines[1]
    assert lines[1].endswith('unverified: "All tests pass"')


async def test_receipt_counts_no_tests_without_reports(place: Place) -> None:
    place.home.mkdir()
    (place.home / "settings.toml").write_text("[receipts]\npytest_report = false\n")

    one = await receipt_of(place, f"{PYTEST}; true")

    assert one.receipt.tests == ()
    assert one.receipt.kind != "tests"
