"""Previews of an edit, shown before it is allowed."""

import pytest

from panpan.errors import ToolError
from tests.capabilities.files.conftest import TOOLS


async def preview(workspace, tool_name, **arguments):
    tool = TOOLS[tool_name]
    before = workspace.contents()
    shown = await tool.preview(tool.input_model.model_validate(arguments), workspace.ctx)
    assert workspace.contents() == before
    return shown


CALLS = {
    "Edit": {"file_path": "f.txt", "old_string": "one", "new_string": "two"},
    "MultiEdit": {"file_path": "f.txt", "edits": [{"old_string": "one", "new_string": "two"}]},
    "Write": {"file_path": "f.txt", "content": "two\n"},
    "Patch": {"patch": "--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-one\n+two\n"},
    "Rename": {"old_name": "one", "new_name": "two", "file_paths": ["f.txt"]},
}


@pytest.mark.parametrize(("tool_name", "arguments"), CALLS.items(), ids=CALLS)
async def test_preview_equals_the_diff_of_the_call(workspace, tool_name, arguments):
    workspace.put_seen("f.txt", "one\n")
    shown = await preview(workspace, tool_name, **arguments)
    assert shown == (await workspace.call(tool_name, **arguments)).display
    assert "-one" in shown.files[0].diff


@pytest.mark.parametrize(("tool_name", "arguments"), CALLS.items(), ids=CALLS)
async def test_preview_of_an_impossible_call_has_the_same_error(workspace, tool_name, arguments):
    workspace.put("f.txt", b"\x00binary")
    with pytest.raises(ToolError) as refused:
        await preview(workspace, tool_name, **arguments)
    with pytest.raises(ToolError) as failed:
        await workspace.call(tool_name, **arguments)
    assert str(refused.value) == str(failed.value)


@pytest.mark.parametrize("content", ["two\n" * 1_500, "two" * 500], ids=["lines", "line"])
async def test_preview_of_a_huge_change_is_cut(workspace, content):
    workspace.put_seen("f.txt", "one\n")
    shown = await preview(workspace, "Write", file_path="f.txt", content=content)
    assert shown.is_cut
    assert shown.files[0].diff.startswith(
        "@@ -1 +1,1500 @@\n-one\n+two\n" if "\n" in content else "@@ -1 +1 @@\n-one\n+two"
    )


async def test_preview_of_a_mode_change_is_none(workspace):
    workspace.put_seen("f.txt", "one\n")
    patch = (
        "diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 100755\n"
        "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-one\n+two\n"
    )
    assert await preview(workspace, "Patch", patch=patch) is None


async def test_preview_of_reading_is_none(workspace):
    workspace.put("f.txt", "one\n")
    assert await preview(workspace, "Read", file_path="f.txt") is None
