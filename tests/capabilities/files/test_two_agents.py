"""Two agents with one workspace: whatever one writes between the other's look and its write is not lost."""

from contextlib import aclosing
from dataclasses import replace

import anyio
import pytest

from panpan.errors import ToolError
from panpan.types.events import Output
from tests.capabilities.files.conftest import TOOLS
from tests.fakes.context import context_in

BEFORE = "def load():\n    return 1\n"

CALLS = {
    "Write": {"file_path": "a.py", "content": "def load():\n    return 3\n"},
    "Edit": {"file_path": "a.py", "old_string": "return 1", "new_string": "return 3"},
    "MultiEdit": {"file_path": "a.py", "edits": [{"old_string": "return 1", "new_string": "return 3"}]},
    "Patch": {"patch": "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def load():\n-    return 1\n+    return 3\n"},
    "Rename": {"old_name": "load", "new_name": "fetch", "file_paths": ["a.py"]},
}


async def call(ctx, name, arguments):
    tool = TOOLS[name]
    async with aclosing(tool.run(tool.input_model.model_validate(arguments), ctx)) as yields:
        outputs = [one async for one in yields if isinstance(one, Output)]
    assert len(outputs) == 1
    return outputs[0]


async def agent_that_read(workspace, *names):
    """Return the context of another agent in the workspace, which has read files of it."""
    ctx = context_in(workspace.root)
    for name in names:
        await call(ctx, "Read", {"file_path": name})
    return ctx


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("other", ["Write", "Edit", "Rename"])
async def test_write_between_look_and_write_is_seen(workspace, name, other):
    # given two agents that have read a file, and a call of one that has worked its change out
    path = workspace.put("a.py", BEFORE)
    first, second = await agent_that_read(workspace, "a.py"), await agent_that_read(workspace, "a.py")

    async def meanwhile(_):
        await call(second, other, CALLS[other])

    # when the other one writes before it does
    with pytest.raises(ToolError, match=r"a\.py has changed since"):
        await call(replace(first, note_changes=meanwhile), name, CALLS[name])

    # then that stands, whole
    expected = {"Rename": BEFORE.replace("load", "fetch")}.get(other, BEFORE.replace("1", "3"))
    assert path.read_text() == expected
    assert workspace.contents() == {"a.py": expected.encode()}


@pytest.mark.parametrize("name", ["Write", "Patch"])
async def test_new_file_of_one_agent_is_not_replaced_by_another(workspace, name):
    calls = {
        "Write": {"file_path": "new.py", "content": "first\n"},
        "Patch": {"patch": "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+first\n"},
    }
    first, second = context_in(workspace.root), context_in(workspace.root)

    async def meanwhile(_):
        await call(second, "Write", {"file_path": "new.py", "content": "second\n"})

    with pytest.raises(ToolError, match=r"new\.py exists already"):
        await call(replace(first, note_changes=meanwhile), name, calls[name])

    assert workspace.contents() == {"new.py": b"second\n"}


async def test_file_changed_by_one_agent_is_not_deleted_by_another(workspace):
    workspace.put("a.py", "1\n")
    first, second = await agent_that_read(workspace, "a.py"), await agent_that_read(workspace, "a.py")

    async def meanwhile(_):
        await call(second, "Write", {"file_path": "a.py", "content": "2\n"})

    patch = {"patch": "--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"}
    with pytest.raises(ToolError, match=r"a\.py has changed since"):
        await call(replace(first, note_changes=meanwhile), "Patch", patch)

    assert workspace.contents() == {"a.py": b"2\n"}


async def test_simultaneous_confirmed_edits_are_never_lost(workspace):
    # given agents that each want another line, and start at the same moment
    lines = [f"line {number}\n" for number in range(8)]
    path = workspace.put("a.py", "".join(lines))
    agents = [await agent_that_read(workspace, "a.py") for _ in lines]
    confirmed = []

    async def edit(number):
        arguments = {"file_path": "a.py", "old_string": lines[number], "new_string": f"agent {number}\n"}
        while number not in confirmed:
            try:
                await call(agents[number], "Edit", arguments)
                confirmed.append(number)
            except ToolError:  # another was first
                await call(agents[number], "Read", {"file_path": "a.py"})

    async with anyio.create_task_group() as tasks:
        for number in range(len(lines)):
            tasks.start_soon(edit, number)

    assert path.read_text() == "".join(f"agent {number}\n" for number in range(len(lines)))
