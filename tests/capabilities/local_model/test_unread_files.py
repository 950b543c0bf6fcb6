"""A fault of the small model that is mended: an edit of a file that it has not looked at."""

from typing import Any

import pytest

from panpan.capabilities.local_model.call_repair import file_of, known_files, read_before_edit
from panpan.types.content import ToolUseBlock
from panpan.types.messages import AssistantMessage, UserMessage


def call(name: str, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(id="c1", name=name, input=arguments)


def edit(path: Any) -> ToolUseBlock:
    return call("Edit", file_path=path, old_string="a", new_string="b")


def reply(*uses: ToolUseBlock) -> AssistantMessage:
    return AssistantMessage(content=uses, model="m", stop_reason="tool_use")


def test_edit_of_an_unknown_file_becomes_its_reading() -> None:
    assert read_before_edit(edit("a.txt"), {"b.txt"}) == call("Read", file_path="a.txt")


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "x/../a.txt"])
def test_edit_of_a_known_file_is_unchanged_in_any_spelling(path: str) -> None:
    assert read_before_edit(edit(path), {"a.txt"}) == edit(path)


@pytest.mark.parametrize(
    "use",
    [
        call("Read", file_path="a.txt"),
        call("Write", file_path="a.txt", content="b"),  # most are of new files
        call("Rename", old_name="a", new_name="b", file_paths=["a.txt"]),  # needs no reading
        call("Bash", command="ls"),
        edit(""),
        edit(3),
        call("Edit", old_string="a"),
        edit("a.txt").model_copy(update={"input_error": "cut off"}),
    ],
)
def test_other_calls_are_unchanged(use: ToolUseBlock) -> None:
    assert read_before_edit(use, set()) == use


def test_known_files_were_read_written_or_edited() -> None:
    messages = [
        UserMessage.of("look at z.txt"),
        reply(call("Read", file_path="./a.txt"), call("Write", file_path="b.txt", content="")),
        reply(edit("c/d.txt"), call("Bash", command="cat e.txt"), call("Rename", file_paths=["f.py"])),
    ]

    assert known_files(messages) == {"a.txt", "b.txt", "c/d.txt"}
    assert file_of(call("Bash", command="cat e.txt")) == ""
