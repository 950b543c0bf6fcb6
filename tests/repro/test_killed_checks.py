"""A check that was killed goes on where it was: what went well is not run again."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from panpan.system.sandbox.choice import find_sandbox
from tests.batch.attempt_runs import until
from tests.repro.checked_paper import CheckedPaper, claim

SCRIPT = """
import sys
from pathlib import Path
import anyio
from panpan.repro.checking.check import CheckOptions, check

anyio.run(check, Path(sys.argv[1]), CheckOptions(at_once=1, env={"PANPAN_HOME": sys.argv[2]}))
"""


async def test_killed_check_goes_on_without_the_runs_that_passed(tmp_path: Path) -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))
    paper = CheckedPaper(tmp_path)
    paper.claim(
        claim("quick", "2.0"),
        claim("slow", "1.0", command=f"touch half; test -e {tmp_path}/go || sleep 717.5; echo mean: 1.0"),
    )
    words = [sys.executable, "-c", SCRIPT, str(paper.folder), paper.env["PANPAN_HOME"]]
    process = await anyio.open_process(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        await until(lambda: any(paper.results.glob("campaign/*/1/state/*/attempt-1/workspace-*/half")))
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert not (paper.results / "check.json").exists()
    (tmp_path / "go").touch()

    report = await paper.check(at_once=1)

    assert [one.verdict for one in report.judgements] == ["reproduced", "reproduced"]
    results = sorted(paper.results.glob("campaign/*/*/state/*/attempt-1/result.json"))
    assert sorted(path.read_text().count('"tries": 2') for path in results) == [0, 1]
    assert paper.begun == 2
