import os
from pathlib import Path

import pytest

from panpan.capabilities.search.ls import MAX_ENTRIES, LsInput, LsTool, size_text
from panpan.core.effects import Effects
from panpan.errors import ToolError
from panpan.system.sandbox.profile import ALWAYS
from panpan.types.content import SummaryDisplay
from tests.capabilities.search.conftest import Workspace


async def test_ls_shows_kind_and_size(workspace: Workspace) -> None:
    workspace.put("b.txt", "x" * 3400)
    workspace.put(".hidden", "x")
    workspace.put("folder/inner.txt")
    (workspace.root / "link").symlink_to("b.txt")
    (workspace.root / "away").symlink_to("/etc")
    os.mkfifo(workspace.root / "pipe")

    assert await workspace.ls() == [
        ".hidden (1 B)",
        "away -> /etc",
        "b.txt (3.4 KB)",
        "folder/",
        "link -> b.txt",
        "pipe (fifo)",
    ]


async def test_ls_omits_placeholders_of_the_sandbox(workspace: Workspace) -> None:
    for name in ALWAYS:
        (workspace.root / name).mkdir()
    workspace.put(".vscode/tasks.json")
    workspace.put("a.txt", "x")

    assert await workspace.ls() == [".vscode/", "a.txt (1 B)"]


async def test_ls_globs_leave_entries_out(workspace: Workspace) -> None:
    for name in ("a.pyc", "b.py", "node_modules/x", ".git/HEAD"):
        workspace.put(name)

    assert await workspace.ls(ignore=["*.pyc", "node_modules/", "**/.git/**"]) == ["b.py (0 B)"]


async def test_ls_cuts_a_large_folder_with_a_note(workspace: Workspace) -> None:
    for number in range(MAX_ENTRIES + 3):
        workspace.put(f"{number:04}")

    lines = await workspace.ls()

    assert lines[0] == "0000 (0 B)"
    assert lines[MAX_ENTRIES:] == ["[the first 500 of 503 entries; use ignore, or Glob]"]


async def test_ls_name_cannot_forge_a_line(workspace: Workspace) -> None:
    workspace.put("a\nb\x1b[31m")
    (workspace.root / os.fsdecode(b"\xff")).touch()

    assert await workspace.ls() == ["a\\nb\\x1b[31m (0 B)", "\\udcff (0 B)"]


async def test_ls_says_that_a_folder_is_empty(workspace: Workspace) -> None:
    assert await workspace.ls(path=".") == ["(empty)"]


async def test_ls_refuses_a_path_that_is_no_folder_inside(workspace: Workspace, tmp_path: Path) -> None:
    workspace.put("a.txt")
    (workspace.root / "out").symlink_to(tmp_path)

    with pytest.raises(ToolError, match="use Read"):
        await workspace.ls(path="a.txt")
    with pytest.raises(ToolError, match="does not exist"):
        await workspace.ls(path="nowhere")
    for path in ("..", "out", "/etc"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await workspace.ls(path=path)


async def test_ls_display_counts_the_entries(workspace: Workspace) -> None:
    workspace.put("a.py")

    assert (await workspace.call(LsTool(), {})).display == SummaryDisplay(text="1 entry")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (99_400, "99.4 KB"), (999_400, "999 KB"), (999_600, "1.0 MB")],
)
def test_ls_sizes_are_short(size: int, text: str) -> None:
    assert size_text(size) == text


async def test_permission_gate_learns_the_paths_read(workspace: Workspace) -> None:
    assert await LsTool().effects(LsInput(path="/etc"), workspace.ctx) == Effects(reads=("/etc",))
    assert LsTool().only_reads
