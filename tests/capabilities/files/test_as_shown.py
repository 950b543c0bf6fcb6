"""Edits are done as shown: a file that changes while the user is asked is not changed in another way."""

from contextlib import aclosing

import pytest

from panpan.core.hooks import Hook
from panpan.core.tool_executor import ToolExecutor
from panpan.types.content import ToolUseBlock
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Ask, PermissionAnswer, Reason
from tests.capabilities.files.conftest import TOOLS


class AsksAlways(Hook):
    async def before_tool(self, call):
        return Ask(Reason("it writes"))


async def call_while(workspace, tool_name, arguments, meanwhile):
    """Call a tool as a session does, do something before the user says yes, and return question and result."""
    asked = []

    async def ask(question):
        asked.append(question)
        meanwhile()
        return PermissionAnswer(is_allowed=True)

    use = ToolUseBlock(id="1", name=tool_name, input=arguments)
    async with ToolExecutor(TOOLS, workspace.ctx, [AsksAlways()], ask=ask) as executor:
        async with aclosing(executor.run([use])) as events:
            results = [event async for event in events if isinstance(event, ToolResultMessage)]
    return asked[0], results[0]


RENAME = {"old_name": "load", "new_name": "fetch", "file_paths": ["a.py", "b.py"]}


async def test_unread_file_that_gains_the_name_elsewhere_is_left_alone(workspace):
    path = workspace.put("a.py", "load()\n")
    workspace.put("b.py", "load()\n")

    question, result = await call_while(
        workspace, "Rename", RENAME, lambda: path.write_text("load()\n" + "\n" * 20 + "load()\n")
    )

    assert question.preview is not None
    assert result.is_error
    assert "a.py changed while the user was asked" in result.text
    assert "b.py" not in result.text
    assert workspace.contents() == {"a.py": b"load()\n" + b"\n" * 20 + b"load()\n", "b.py": b"load()\n"}


async def test_harmless_change_during_the_question_does_not_matter(workspace):
    path = workspace.put("a.py", "load()\n" + "\n" * 20)
    workspace.put("b.py", "load()\n")

    _, result = await call_while(workspace, "Rename", RENAME, lambda: path.write_text("load()\n" + "\n" * 20 + "x\n"))

    assert not result.is_error
    assert path.read_text() == "fetch()\n" + "\n" * 20 + "x\n"


async def test_path_that_leads_elsewhere_by_then_is_not_followed(workspace):
    workspace.put("a.py", "load()\n")
    workspace.put("b.py", "load()\n")
    workspace.put("other.py", "load()\n")
    link = workspace.root / "link.py"
    link.symlink_to("a.py")

    def meanwhile():
        link.unlink()
        link.symlink_to("other.py")

    _, result = await call_while(workspace, "Rename", {**RENAME, "file_paths": ["link.py", "b.py"]}, meanwhile)

    assert "a.py, other.py changed while" in result.text
    assert set(workspace.contents().values()) == {b"load()\n"}


CALLS = {
    "Edit": {"file_path": "f.txt", "old_string": "one", "new_string": "two"},
    "MultiEdit": {"file_path": "f.txt", "edits": [{"old_string": "one", "new_string": "two"}]},
    "Write": {"file_path": "f.txt", "content": "two\n"},
    "Patch": {"patch": "--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-one\n+two\n"},
}


@pytest.mark.parametrize(("tool_name", "arguments"), CALLS.items(), ids=CALLS)
@pytest.mark.parametrize("is_read_again", [False, True])
async def test_read_file_changed_during_the_question_is_left_alone(workspace, tool_name, arguments, is_read_again):
    path = workspace.put_seen("f.txt", "one\n")

    def meanwhile():
        path.write_text("one\nand more\n")
        if is_read_again:
            workspace.ctx.seen_files.add(path, path.read_bytes())

    _, result = await call_while(workspace, tool_name, arguments, meanwhile)

    assert result.is_error
    assert "f.txt" in result.text
    assert "changed" in result.text
    assert path.read_text() == "one\nand more\n"


@pytest.mark.parametrize("is_there_first", [False, True])
async def test_write_makes_a_file_only_where_it_was_shown(workspace, is_there_first):
    path = workspace.put_seen("f.txt", "one\n") if is_there_first else workspace.root / "f.txt"

    def meanwhile():
        path.unlink() if is_there_first else path.write_text("of the user\n")

    question, result = await call_while(workspace, "Write", {"file_path": "f.txt", "content": "two\n"}, meanwhile)

    assert question.preview.files[0].is_new != is_there_first
    assert result.is_error
    assert workspace.contents() == ({} if is_there_first else {"f.txt": b"of the user\n"})


@pytest.mark.parametrize("now", ["load()\n", "load()\nload()\n"])
async def test_partly_shown_preview_binds_the_call_too(workspace, now):
    workspace.put("a.py", "load\n" * 1_500)
    path = workspace.put("b.py", "load()\n")

    question, result = await call_while(workspace, "Rename", RENAME, lambda: path.write_text(now))

    assert question.preview.is_cut
    assert ("b.py changed while the user was asked" in result.text) == (now.count("load") > 1) == result.is_error


async def test_missing_preview_binds_nothing(workspace):
    workspace.put_seen("f.txt", "one\n")
    patch = (
        "diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 100755\n"
        "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-one\n+two\n"
    )

    question, result = await call_while(workspace, "Patch", {"patch": patch}, lambda: None)

    assert question.preview is None
    assert not result.is_error
