"""The page that goes from a clone to a report: its commands run in their order, and what it shows is what comes."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import Reply, ToolCall, call, say, serving

PAGE = (Path(__file__).parents[2] / "docs" / "journey.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[number]


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def clone(panpan: Panpan) -> Path:
    files = {"README.md": "markdown", "measurements.csv": "csv", "table1.py": "python"}
    for name, language in files.items():
        (panpan.workspace / name).write_text(block(language), encoding="utf-8")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as cloned"]):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=panpan.workspace, check=True)
    return panpan.workspace


def test_journey_from_a_clone_to_a_report(panpan: Panpan, clone: Path) -> None:
    looks = [ToolCall("Read", {"file_path": name}) for name in ("README.md", "measurements.csv", "table1.py")]
    run = call("Bash", {"command": "python3 table1.py"})
    edit = {"file_path": "table1.py", "old_string": "values[1:-1]", "new_string": "sorted(values)[1:-1]"}
    found, fixed, changed = (block("text", number) for number in range(3))
    again = Reply((looks[2], ToolCall("Edit", edit)))  # another process may have changed it since
    script = [Reply(tuple(looks)), run, say(one_line(found)), again, run, say(one_line(fixed))]
    doctor, look, fix, diff, replay, export = (block("sh", number).strip() for number in range(6))

    with serving(script) as server:
        panpan.use(server)
        environment = panpan.run_script(doctor)
        looked = panpan.run_script(look)
        repaired = panpan.run_script(fix)
    difference = panpan.run_script(diff)
    played = panpan.run_script(replay)
    written = panpan.run_script(export)

    assert "Traceback" not in environment.stderr
    assert (looked.code, one_line(looked.stdout)) == (0, one_line(found))
    assert (repaired.code, one_line(repaired.stdout)) == (0, one_line(fixed))
    printed = [str(request.messages[-1]) for request in server.requests]
    assert "Table 1: 2.33" in printed[2]
    assert "Table 1: 3.50" in printed[5]
    assert difference.stdout == changed
    assert played.code == 0, played.stdout + played.stderr
    assert written.code == 0, written.stderr
    report = (clone.parent / "report.md").read_text(encoding="utf-8")
    assert all(text in report for text in ("is Table 1 right?", "Table 1: 2.33", "sorted(values)[1:-1]", "3.50"))
