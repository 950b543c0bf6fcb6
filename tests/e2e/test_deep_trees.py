"""Folders nested deeper than Python recurses, and than a path can say, do no harm to a session."""

import subprocess
from collections.abc import Iterator

import pytest

from panpan.system.files.folder_tree import remove_tree
from tests.e2e.conftest import Panpan
from tests.model_server import ToolCall, call, calls, say, serving
from tests.system.files.test_folder_tree import make_deep

LEVELS = 1_450
"""With names of two letters: deeper than Python recurses, as far as a path can say, and some levels beyond that."""
NEW = "/".join(["d"] * 1010)
"""A path of folders that Python cannot make or remove by recursion."""


@pytest.fixture
def deep(panpan: Panpan) -> Iterator[Panpan]:
    make_deep(panpan.workspace, LEVELS, name="dd")
    yield panpan
    for name in ("dd", "e"):
        if (panpan.workspace / name).exists():
            remove_tree(panpan.workspace / name)


@pytest.mark.timeout(300)
def test_session_in_a_deep_tree_works_and_is_undone(deep: Panpan) -> None:
    subprocess.run(["git", "init", "-q"], cwd=deep.workspace, check=True)
    script = [
        calls(
            ToolCall("LS", {}),
            ToolCall("Glob", {"pattern": "**/file"}),
            ToolCall("Grep", {"pattern": "x", "glob": "**/*.txt"}),
        ),
        call("Bash", {"command": "echo one > made.txt"}),
        call("Write", {"file_path": f"e/{NEW}/new.txt", "content": "new\n"}),
        say("Done."),
    ]
    with serving(script) as server:
        deep.use(server)
        done = deep.run("-p", "go", "-y", "-f", "json", timeout_s=200)
    results = [block for request in server.requests[1:] for block in request.messages[-1]["content"]]
    new_is_there = (deep.workspace / "e" / NEW / "new.txt").exists()
    remove_tree(deep.workspace / "e")
    undone = deep.run("undo", "--yes", timeout_s=200)

    assert (done.code, done.result["result"]) == (0, "Done."), done.stderr
    assert "fault" not in done.stderr
    assert [result for result in results if result.get("is_error")] == []
    assert new_is_there
    assert undone.code == 0, undone.stderr
    assert not (deep.workspace / "made.txt").exists()
