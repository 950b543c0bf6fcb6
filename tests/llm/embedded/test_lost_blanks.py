"""The one fault of the small model that is mended: a blank taken away with a word."""

import pytest

from panpan.llm.embedded.lost_blanks import with_blanks_kept
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.events import BlockFinished, TextDelta
from panpan.types.messages import AssistantMessage


def edit(old, new, name="Edit"):
    return ToolUseBlock(id="c1", name=name, input={"file_path": "a.txt", "old_string": old, "new_string": new})


def test_a_blank_that_was_taken_away_with_a_word_is_put_back_in_block_and_message():
    use = edit(" blue", "green")
    message = AssistantMessage(content=(TextBlock(text="so"), use), model="m", stop_reason="tool_use")
    assert with_blanks_kept(BlockFinished(1, use)) == BlockFinished(1, edit(" blue", " green"))
    assert list(with_blanks_kept(message).tool_uses) == [edit(" blue", " green")]
    assert with_blanks_kept(message).text == "so"


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
def test_everything_else_stays_as_it_is(use):
    assert with_blanks_kept(BlockFinished(0, use)) == BlockFinished(0, use)


def test_text_passes():
    assert with_blanks_kept(TextDelta(0, " a")) == TextDelta(0, " a")
