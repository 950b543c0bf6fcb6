"""Behaviour that all of the file tools share."""

import json
from contextlib import suppress

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.files.edit import EditInput, EditTool, MultiEditInput, MultiEditTool
from panpan.capabilities.files.literal_edit import explain_missing
from panpan.capabilities.files.patch import PatchInput, PatchTool, apply_hunks, parse_patch
from panpan.capabilities.files.read import ReadInput, ReadTool
from panpan.capabilities.files.rename import RenameInput, RenameTool
from panpan.capabilities.files.write import WriteInput, WriteTool
from panpan.core.effects import PathUse
from panpan.documents.read_image import prepare_image
from panpan.documents.read_notebook import read_notebook
from panpan.documents.read_pdf import read_pdf
from panpan.errors import ToolError
from panpan.system.text.file_text import decode_file
from tests.fakes.context import context_in

CALLS = [
    (ReadTool(), ReadInput(file_path="f"), "read"),
    (WriteTool(), WriteInput(file_path="f", content="x"), "write"),
    (EditTool(), EditInput(file_path="f", old_string="a", new_string="b"), "write"),
    (MultiEditTool(), MultiEditInput(file_path="f", edits=[{"old_string": "a", "new_string": "b"}]), "write"),
    (PatchTool(), PatchInput(patch="*** Begin Patch\n*** Delete File: f\n*** End Patch"), "write"),
    (RenameTool(), RenameInput(old_name="a", new_name="b", file_paths=["f"]), "write"),
]


@pytest.mark.parametrize(("tool", "args", "access"), CALLS)
async def test_permission_gate_learns_the_paths_of_a_call(tool, args, access, tmp_path):
    told = await tool.effects(args, context_in(tmp_path))

    assert tool.only_reads == told.is_read_only == tool.may_run_in_parallel(args) == (access == "read")
    assert list(told.path_uses) == [PathUse("f", access)]
    assert tool.title(args).startswith("f")


def test_tool_definitions_are_small():
    sizes = {}
    for tool, _, _ in CALLS:
        one = tool.definition
        sizes[one.name] = len(
            json.dumps({"name": one.name, "description": one.description, "input_schema": one.input_schema})
        )
    assert list(sizes) == ["Read", "Write", "Edit", "MultiEdit", "Patch", "Rename"]
    assert sum(sizes.values()) < 4_500


def test_file_tools_work_on_trio(workspace):
    async def main():
        await workspace.call("Write", file_path="f.txt", content="a\n")
        await workspace.call("Read", file_path="f.txt")
        await workspace.call("Edit", file_path="f.txt", old_string="a", new_string="b")
        await workspace.call("Patch", patch="--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-b\n+c\n")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await workspace.call("Edit", file_path="f.txt", old_string="c", new_string="d")

    anyio.run(main, backend="trio")

    assert workspace.contents() == {"f.txt": b"c\n"}


PATCH_LINES = st.sampled_from(
    [
        "*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Update File: b", "*** Delete File: c",
        "*** Move to: d", "*** End of File", "@@", "@@ x", "@@ -1,2 +1,2 @@", "@@ -0,0 +1 @@ f", " x", "-x", "+y", "",
        "\\ No newline at end of file", "--- a/x", "+++ b/x", "--- /dev/null", "+++ /dev/null", "diff --git a/x b/x",
        "diff --git x", "rename from x", "rename to y", "new file mode 100644", "old mode 100644", "new mode 100755",
        "deleted file mode 100644", "index 1..2", '--- "a/\\303"', "garbage", "*** Frobnicate: x", " \r", "-x\r", "\r",
    ]
)  # fmt: skip


@settings(max_examples=100)
@given(lines=st.lists(PATCH_LINES, max_size=12), is_enveloped=st.booleans(), content=st.text("xy\r\n", max_size=8))
def test_patch_of_any_text_is_applied_or_refused(lines, is_enveloped, content):
    if is_enveloped:
        lines = ["*** Begin Patch", *lines, "*** End Patch"]
    with suppress(ToolError):
        for patch in parse_patch("\n".join(lines)):
            assert patch.path
            with suppress(ToolError):
                apply_hunks(decode_file(content.encode()), patch.hunks, "f")


@given(text=st.text("ab \t\r\n1", max_size=40), wanted=st.text("ab \t\r\n1", min_size=1, max_size=20))
def test_missing_text_can_always_be_explained(text, wanted):
    assert explain_missing(text, wanted)


@given(
    data=st.binary(max_size=60),
    head=st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF0000WEBP"]),
)
def test_damaged_pictures_are_only_ever_refused(data, head):
    with suppress(ToolError):
        prepare_image(head + data, "f")


@settings(max_examples=50)
@given(data=st.binary(max_size=200), pages=st.none() | st.text("0123456789-, ", max_size=6))
def test_damaged_pdfs_are_only_ever_refused(data, pages):
    with suppress(ToolError):
        read_pdf(b"%PDF-1.4\n" + data, pages, "f")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["cell_type", "id", "source", "outputs", "output_type", "data", "text", "text/plain", "image/png"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(cells=JSON)
def test_notebook_of_any_cells_is_shown_or_left_as_text(cells):
    page = read_notebook(json.dumps({"cells": cells}).encode(), 1, 10, "f")
    assert page is None or page.text
