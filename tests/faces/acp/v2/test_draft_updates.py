"""Calls and the past in version 2."""

import subprocess
from pathlib import Path

import pytest
from acp.schema import ToolCallProgress

from panpan.editing.planned_edit import ChangeReport
from panpan.faces.acp.calls import diffs
from panpan.faces.acp.updates import agent_text, thought
from panpan.faces.acp.v2.updates import call_of, whole_messages
from panpan.types.content import FileDiff
from tests.faces.acp.v2.draft_editor import SECOND

LONG = "".join(f"{number}\n" for number in range(40))


def content_of(file: FileDiff, folder: Path) -> list[dict[str, object]]:
    """Return the content of a call with a change, which has to fit the schema."""
    call = ToolCallProgress(session_update="tool_call_update", tool_call_id="1", content=list(diffs(file, folder)))
    update = {"sessionUpdate": "tool_call_update", **call_of(call)}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "1", "update": update}}
    assert list(SECOND.problems_of(message, {})) == []
    return list(update["content"])


@pytest.mark.parametrize("name", ["a.py", "a b.py", 'q"u\\o.py', "tab\there.py", "ümlaut/x.py"])
@pytest.mark.parametrize(
    ("before", "after", "operation"),
    [
        ("one\ntwo\n", "one\n2\n", "modify"),
        ("one", "one\ntwo", "modify"),
        (LONG, LONG.replace("3\n", "three\n"), "modify"),
        (None, "new\n", "add"),
        (None, "", "add"),
        ("old\n", None, "delete"),
    ],
)
def test_patch_is_one_that_git_applies(
    tmp_path: Path, name: str, before: str | None, after: str | None, operation: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if before is not None:
        path.write_text(before)

    diff = content_of(ChangeReport(name, before, after).diff(), tmp_path)[0]
    git = ["git", "apply", "-"]
    subprocess.run(git, cwd=tmp_path, input=diff["patch"]["text"].encode(), check=True, capture_output=True)  # type: ignore[index]

    assert diff["changes"] == [{"operation": operation, "path": str(path), "fileType": "text"}]
    assert (path.read_text() if path.exists() else None) == after


def test_change_that_is_cut_has_no_patch(tmp_path: Path) -> None:
    file = ChangeReport("a.txt", "".join(f"{one}\n" for one in range(20_000)), "short\n").diff()

    diff, shown, note = content_of(file, tmp_path)

    assert file.is_cut
    assert "patch" not in diff
    assert "-19\n" in str(shown["content"]["text"])  # type: ignore[index]
    assert "not all is shown" in str(note["content"]["text"])  # type: ignore[index]


def test_pieces_of_a_message_are_one_update_in_the_past() -> None:
    past = [agent_text("one", "a"), thought("hm", "a"), agent_text("two", "a"), agent_text("three", "b")]

    found = whole_messages(past)

    assert [(one["sessionUpdate"], one["messageId"]) for one in found] == [
        ("agent_message", "a"),
        ("agent_thought", "a"),
        ("agent_message", "b"),
    ]
    assert [block["text"] for block in found[0]["content"]] == ["one", "two"]
