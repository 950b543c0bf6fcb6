"""Reports in the workspace count if this command made them, and no other."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.receipts.recorded import Workspace, workspace_at


def report(*, made: datetime | None = None, cases: str = '<testcase name="a" classname="c"/>') -> str:
    """Return a report that was made at a time; None: it does not say."""
    time = f' timestamp="{made.isoformat()}"' if made is not None else ""
    return f'<testsuites name="jest tests"><testsuite name="s"{time}>{cases}</testsuite></testsuites>'


async def passed(work: Workspace, line: str) -> list[tuple[str, int]]:
    receipt = await work.run(line)
    return [(one.framework, one.passed) for one in receipt.tests]


async def test_report_that_a_program_writes_counts(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        (tmp_path / "made").write_text(report(made=datetime.now(UTC)))
        (tmp_path / "untimed").write_text(report())
        assert await passed(work, "mkdir out; cat ../made > out/junit.xml") == [("jest", 1)]
        assert await passed(work, "cat ../untimed > TEST-a.xml; cat TEST-a.xml; cp TEST-a.xml b.xml") == [("jest", 1)]


async def test_report_that_was_there_before_counts_for_nothing(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("junit.xml", report(made=datetime.now(UTC)))
        assert await passed(work, "cat junit.xml; touch other.xml") == []
        assert await passed(work, "cp junit.xml copy.xml") == []


async def test_old_report_counts_for_nothing(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        for days in (-2, 2):
            (tmp_path / "old").write_text(report(made=datetime.now(UTC) + timedelta(days=days)))
            assert await passed(work, f"cat ../old > {days}.xml") == []
        (tmp_path / "untimed").write_text(report())
        os.utime(tmp_path / "untimed", (1, 1))
        assert await passed(work, "cp -p ../untimed unpacked.xml") == []


async def test_report_that_git_tracks_counts_for_nothing(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("TEST-a.xml", report())
        await work.run("git init -q && git add -A && rm TEST-a.xml")
        assert await passed(work, "git checkout -q -- .") == []


async def test_reports_of_one_program_are_added_up(tmp_path: Path) -> None:
    async with workspace_at(tmp_path) as work:
        work.write("src/a.test.js")
        for number in range(3):
            cases = f'<testcase name="{number}" file="src/a.test.js"/><testcase name="b"><failure/></testcase>'
            (tmp_path / f"{number}.xml").write_text(report(made=datetime.now(UTC), cases=cases))
        receipt = await work.run("cp ../*.xml . ")
    counts = receipt.tests[0]
    assert (counts.passed, counts.failed, counts.files) == (3, 3, ("src/a.test.js",))
    assert receipt.kind == "tests"
