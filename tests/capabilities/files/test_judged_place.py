"""The place that was judged is what a call reads and writes, whatever is put there between decision and opening."""

import json
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.core.hooks import NoLedger
from panpan.core.tool_executor import ToolExecutor
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.types.content import ToolUseBlock
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import PermissionAnswer
from tests.capabilities.files.conftest import TOOLS

SECRET = "SECRET word\n"
NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [{"cell_type": "code", "id": "c", "metadata": {}, "source": "one", "outputs": []}],
    }
)
PROGRAM = "diff --git a/sub/p b/sub/p\nnew file mode 100755\n--- /dev/null\n+++ b/sub/p\n@@ -0,0 +1 @@\n+x\n"
CALLS = {
    "read": ("Read", {"file_path": "sub/a.txt"}),
    "write": ("Write", {"file_path": "sub/a.txt", "content": "new\n"}),
    "write new": ("Write", {"file_path": "sub/new.txt", "content": "new\n"}),
    "write deep": ("Write", {"file_path": "sub/new/deep.txt", "content": "new\n"}),
    "edit": ("Edit", {"file_path": "sub/a.txt", "old_string": "word", "new_string": "other"}),
    "multi": ("MultiEdit", {"file_path": "sub/a.txt", "edits": [{"old_string": "word", "new_string": "other"}]}),
    "rename": ("Rename", {"old_name": "word", "new_name": "other", "file_paths": ["sub/a.txt"]}),
    "notebook": ("NotebookEdit", {"file_path": "sub/n.ipynb", "cell": "c", "source": "two"}),
    "patch": ("Patch", {"patch": "--- sub/a.txt\n+++ sub/a.txt\n@@ -1 +1 @@\n-one word\n+two\n"}),
    "delete": ("Patch", {"patch": "*** Begin Patch\n*** Delete File: sub/a.txt\n*** End Patch"}),
    "move": ("Patch", {"patch": "*** Begin Patch\n*** Update File: b.txt\n*** Move to: sub/b.txt\n*** End Patch"}),
    "program": ("Patch", {"patch": PROGRAM}),
}  # fmt: skip
CHANGES = [name for name, (tool, _) in CALLS.items() if tool != "Read"]


class Swapping(NoLedger):
    """Swaps right before a call makes its changes, after it has worked them out."""

    def __init__(self, swap: Callable[[], None]) -> None:
        self._swap = swap

    async def files_change(self, tool_use_id, changes):
        self._swap()


def fill(workspace, outside: Path) -> None:
    """Fill a folder of the workspace, and one outside with the same names."""
    workspace.put_seen("sub/a.txt", "one word\n")
    workspace.put_seen("sub/n.ipynb", NOTEBOOK)
    workspace.put_seen("b.txt", "b\n")
    outside.mkdir()
    (outside / "a.txt").write_text(SECRET)
    (outside / "n.ipynb").write_text(NOTEBOOK)


async def call_with(workspace, name: str, *, when_asked=lambda: None, when_changing=lambda: None, **rules):
    """Make a call as a session does, whose user says yes, and return its result."""
    tool, arguments = CALLS[name]

    async def ask(question):
        when_asked()
        return PermissionAnswer(is_allowed=True)

    gate = PermissionGate([RuleSource("test", True, **{"ask": ["Read"], **rules})])
    use = ToolUseBlock(id="1", name=tool, input=arguments)
    ledger = Swapping(when_changing)
    async with ToolExecutor(TOOLS, workspace.ctx, [gate], ask=ask, ledger=ledger) as executor:
        async with aclosing(executor.run([use])) as events:
            (result,) = [event async for event in events if isinstance(event, ToolResultMessage)]
    return result


def swap_folder(workspace, outside: Path) -> None:
    (workspace.root / "sub").rename(workspace.root / "moved")
    (workspace.root / "sub").symlink_to(outside)


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes()) for path in folder.rglob("*")}


def no_litter(folder: Path) -> bool:
    return not [path for path in folder.rglob("*") if path.name.startswith(".panpan-")]


@pytest.mark.parametrize("name", CALLS)
async def test_folder_swapped_after_the_decision_leads_no_call_out(name, workspace):
    outside = workspace.root.parent / "outside"
    fill(workspace, outside)
    before, inside = state_of(outside), state_of(workspace.root / "sub")

    result = await call_with(workspace, name, when_asked=lambda: swap_folder(workspace, outside))

    assert result.is_error
    assert "SECRET" not in result.text
    assert state_of(outside) == before
    assert state_of(workspace.root / "moved") == inside
    assert (workspace.root / "b.txt").exists()
    assert no_litter(workspace.root)


@pytest.mark.parametrize("name", CHANGES)
async def test_folder_swapped_before_the_write_leads_no_call_out(name, workspace):
    outside = workspace.root.parent / "outside"
    fill(workspace, outside)
    (outside / "a.txt").write_text("one word\n")  # so that the change would fit there, too
    before, inside = state_of(outside), state_of(workspace.root / "sub")

    result = await call_with(workspace, name, when_changing=lambda: swap_folder(workspace, outside))

    assert result.is_error
    assert state_of(outside) == before
    assert state_of(workspace.root / "moved") == inside
    assert (workspace.root / "b.txt").exists()
    assert no_litter(workspace.root)


@pytest.mark.parametrize("name", ["read", "write", "write new", "edit", "rename", "patch", "delete"])
@pytest.mark.parametrize("seam", ["when_asked", "when_changing"])
async def test_link_at_the_name_itself_leads_no_call_out(name, seam, workspace):
    outside = workspace.root.parent / "outside"
    fill(workspace, outside)
    (outside / "new.txt").write_text(SECRET)
    before = state_of(outside)

    def swap() -> None:
        for file in ("a.txt", "new.txt"):
            (workspace.root / "sub" / file).unlink(missing_ok=True)
            (workspace.root / "sub" / file).symlink_to(outside / file)

    result = await call_with(workspace, name, **{seam: swap})

    assert result.is_error or (name, seam) == ("read", "when_changing")
    assert "SECRET" not in result.text
    assert state_of(outside) == before
    assert no_litter(workspace.root)


@pytest.mark.parametrize("name", ["read", "edit", "write", "rename"])
async def test_judged_link_leads_to_its_old_target(name, workspace):
    fill(workspace, workspace.root.parent / "outside")
    workspace.put_seen("closed/a.txt", "SECRET\n")
    (workspace.root / "sub").rename(workspace.root / "real")
    (workspace.root / "sub").symlink_to("real")
    workspace.ctx.seen_files.add(workspace.root / "real" / "a.txt", b"one word\n")

    def lead_elsewhere() -> None:
        (workspace.root / "sub").unlink()
        (workspace.root / "sub").symlink_to("closed")

    deny = ["Read(./closed/**)", "Edit(./closed/**)"]
    result = await call_with(workspace, name, when_asked=lead_elsewhere, deny=deny)

    assert not result.is_error, result.text
    assert "SECRET" not in result.text
    assert (workspace.root / "closed" / "a.txt").read_text() == "SECRET\n"
    assert name == "read" or (workspace.root / "real" / "a.txt").read_text() != "one word\n"


async def test_approved_outside_place_is_reached_through_no_link(workspace):
    outside, other = workspace.root.parent / "approved", workspace.root.parent / "other"
    outside.mkdir()
    other.mkdir()
    fill(workspace, workspace.root.parent / "outside")
    (workspace.root / "sub").rename(workspace.root / "real")
    (workspace.root / "sub").symlink_to(outside)

    def swap() -> None:
        outside.rmdir()
        outside.symlink_to(other)

    allowed = await call_with(workspace, "write new")
    (outside / "new.txt").unlink()
    refused = await call_with(workspace, "write new", when_asked=swap)

    assert not allowed.is_error
    assert "a link is in the way" in refused.text
    assert list(other.iterdir()) == []


async def test_judgement_of_one_call_does_not_bind_the_next(workspace):
    fill(workspace, workspace.root.parent / "outside")
    workspace.put("other/a.txt", "other\n")
    (workspace.root / "sub").rename(workspace.root / "real")
    (workspace.root / "sub").symlink_to("real")

    first = await call_with(workspace, "read")
    (workspace.root / "sub").unlink()
    (workspace.root / "sub").symlink_to("other")
    second = await call_with(workspace, "read")

    assert "one word" in first.text
    assert "other" in second.text
