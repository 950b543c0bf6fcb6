"""/export: the session as a file, in the format that its ending says, without keys, over nothing that is there."""

import json
import stat

import pytest

from tests.e2e.conftest import KEY, Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl
from tests.model_server import ToolCall, calls, say, serving
from tests.terminal_emulator import Screen

PASSWORD = "ghp_" + "a1B2" * 9
SHOWN = "# Heading\n\nIt says <b>hello</b> & *goodbye*."


@pytest.fixture
def repl(panpan: Panpan, start: Start) -> Repl:
    """Return the REPL after a turn in which keys were said and read."""
    (panpan.workspace / "notes.txt").write_text(f"token = {PASSWORD}\n")
    with serving([calls(ToolCall("Read", {"file_path": "notes.txt"})), say(SHOWN)]) as server:
        panpan.use(server)
        repl = start(columns=200)
        repl.turn(f"my key is {KEY}, and look", "goodbye")
    return repl


def answer_to(command: str, screen: Screen) -> str:
    """Return what stands below a command, on one line."""
    return " ".join(screen.text.rpartition(f"{command}\n")[2].split())


FORMATS = {
    "talk.md": ["my key is", "Heading", "notes.txt"],
    "talk.html": ["<!DOCTYPE html>", "<h1>Heading</h1>", "&lt;b&gt;hello&lt;/b&gt;", "<em>goodbye</em>"],
    "talk.json": ['"panpan-session"', "Heading", '"tool_result"'],
}
"""Names, and what is in a file that is called so."""


def test_export_chooses_the_format_and_redacts_keys(panpan: Panpan, repl: Repl) -> None:
    for name in (*FORMATS, "new/folder/talk.md"):
        repl.submit(f"/export {name}")
        repl.wait_for(lambda screen: answer_to(f"/export {name}", screen).startswith("written to"))  # noqa: B023
        repl.wait_for_prompt()

    for name, contents in FORMATS.items():
        file = panpan.workspace / name
        text = file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert all(content in text for content in contents)
        assert KEY not in text
        assert PASSWORD not in text
        assert "[redacted]" in text.replace("\\", "")
    assert (panpan.workspace / "new/folder/talk.md").is_file()
    assert json.loads((panpan.workspace / "talk.json").read_text())["messages"][-1]["type"] == "assistant"


def test_export_reports_failures_and_overwrites_nothing(panpan: Panpan, repl: Repl) -> None:
    (panpan.workspace / "mine.md").write_text("mine")
    (panpan.workspace / "folder").mkdir()
    for name, said in [
        ("mine.md", "exists already"),
        ("folder", "is a folder"),
        ("talk.pdf", ".md, .html, .json, .jsonl or .atif.json"),
        ("/proc/talk.md", "/proc/talk.md"),
    ]:
        repl.submit(f"/export {name}")
        repl.wait_for(lambda screen: said in answer_to(f"/export {name}", screen))  # noqa: B023
        repl.wait_for_prompt()

    assert (panpan.workspace / "mine.md").read_text() == "mine"
    assert sorted(path.name for path in panpan.workspace.iterdir()) == ["folder", "mine.md", "notes.txt"]
