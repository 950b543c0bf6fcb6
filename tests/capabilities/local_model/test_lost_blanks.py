"""A fault of the small model that is mended: a blank taken away with a word."""

import pytest

from panpan.capabilities.local_model.call_repair import keep_blank
from panpan.types.content import ToolUseBlock


def edit(old: str, new: str, name: str = "Edit") -> ToolUseBlock:
    return ToolUseBlock(id="c1", name=name, input={"file_path": "a.txt", "old_string": old, "new_string": new})


def test_blank_removed_with_a_word_is_restored() -> None:
    assert keep_blank(edit(" blue", "green")) == edit(" blue", " green")


@pytest.mark.parametrize(
    "use",
    [
        edit("blue", "green"),
        edit(" blue", " green"),
        edit(" blue", "blue"),  # somebody wants the blank away
        edit("  blue", "green"),  # an indent
        edit(" blue", ""),
        edit(" blue", "\tgreen"),
        edit(" blue", "green", name="Other"),
        ToolUseBlock(id="c1", name="Edit", input={"old_string": 3}),
    ],
)
def test_other_calls_are_unchanged(use: ToolUseBlock) -> None:
    assert keep_blank(use) == use
