"""A fault of the small model that is mended: it takes a refusal for the end."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.core.tool_call import prepared
from panpan.errors import ToolError
from panpan.llm.embedded.after_refusal import reply_after_refusal
from panpan.tools.registry import all_tools
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tests.fakes.context import context_in

TOOLS = {tool.name: tool for tool in all_tools()}
RENAME = {"old_name": "fetch", "new_name": "load", "file_paths": ["a.py", "b.py"]}


def call(name: str, use_id: str = "c1", **arguments: Any) -> AssistantMessage:
    use = ToolUseBlock(id=use_id, name=name, input=arguments)
    return AssistantMessage(content=(use,), model="m", stop_reason="tool_use")


def result(text: str, use_id: str = "c1", is_error: bool = True) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=use_id, content=(TextBlock(text=text),), is_error=is_error)
    return ToolResultMessage(result=block)


async def refused(message: AssistantMessage, workspace: Path) -> ToolResultMessage:
    """What the tool really says of a call that it refuses."""
    (use,) = message.tool_uses
    tool = TOOLS[use.name]
    with pytest.raises(ToolError) as refusal:
        async with aclosing(tool.run(tool.input_model.model_validate(use.input), context_in(workspace))) as outputs:
            async for _ in outputs:
                pass
    return result(str(refusal.value), use.id)


def next_call(messages: Sequence[Message]) -> ToolUseBlock | None:
    events = reply_after_refusal(messages, "local")
    if not events:
        return None
    last = events[-1]
    assert isinstance(last, AssistantMessage)
    (use,) = last.tool_uses
    assert prepared(use, TOOLS).problem == ""
    return use


@pytest.mark.parametrize(
    ("path", "command"),
    [("docs", "ls docs"), ("my docs", "ls 'my docs'"), ("-l", "ls ./-l"), ("a;b", "ls 'a;b'")],
)
async def test_a_folder_that_was_read_is_listed(path: str, command: str, tmp_path: Path) -> None:
    (tmp_path / path).mkdir()
    read = call("Read", file_path=path)

    use = next_call([UserMessage.of("what is in it?"), read, await refused(read, tmp_path)])

    assert use is not None
    assert (use.name, use.input) == ("Bash", {"command": command})


async def test_the_id_of_the_call_is_one_that_the_conversation_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    read = call("Read", file_path="docs")
    before = [call("Bash", use_id="after_refusal", command="ls docs"), result("a.md", "after_refusal", is_error=False)]

    use = next_call([*before, read, await refused(read, tmp_path)])

    assert use is not None
    assert use.id not in {"after_refusal", "c1"}


async def test_nothing_is_done_where_the_newest_message_is_no_such_refusal(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    read = call("Read", file_path="docs")
    refusal = await refused(read, tmp_path)

    assert next_call([]) is None
    assert next_call([read, result(refusal.text, is_error=False)]) is None, "a file that says so"
    assert next_call([read, result("docs does not exist")]) is None
    assert next_call([call("Bash", command="cat docs"), refusal]) is None
    assert next_call([read, refusal, UserMessage.of("never mind")]) is None
    assert next_call([refusal]) is None, "its call was left out"


def write_renamed_the_other_way(workspace: Path) -> None:
    (workspace / "a.py").write_text("def load():\n    pass\n")
    (workspace / "b.py").write_text("from a import load\n")


async def test_names_that_were_taken_for_each_other_are_exchanged(tmp_path: Path) -> None:
    write_renamed_the_other_way(tmp_path)
    rename = call("Rename", **RENAME)

    use = next_call([UserMessage.of("say fetch, not load (a.py, b.py)"), rename, await refused(rename, tmp_path)])

    assert use is not None
    assert (use.name, use.input) == ("Rename", {**RENAME, "old_name": "load", "new_name": "fetch"})


@pytest.mark.parametrize("words", ["rename fetch to load", "fetch -> load", "turn `fetch` into `load`"])
async def test_nothing_is_turned_against_the_words_of_the_user(words: str, tmp_path: Path) -> None:
    write_renamed_the_other_way(tmp_path)
    rename = call("Rename", **RENAME)

    assert next_call([UserMessage.of(words), rename, await refused(rename, tmp_path)]) is None


async def test_a_rename_that_was_made_is_not_taken_back_when_it_is_asked_for_again(tmp_path: Path) -> None:
    write_renamed_the_other_way(tmp_path)
    first, again = call("Rename", **RENAME), call("Rename", use_id="c2", **RENAME)
    done = result("renamed fetch to load", is_error=False)

    messages = [UserMessage.of("say load, not fetch"), first, done, again, await refused(again, tmp_path)]

    assert next_call(messages) is None


async def test_a_name_that_is_in_no_file_is_left_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("pass\n")
    (tmp_path / "b.py").write_text("pass\n")
    rename = call("Rename", **RENAME)

    assert next_call([UserMessage.of("say fetch"), rename, await refused(rename, tmp_path)]) is None
