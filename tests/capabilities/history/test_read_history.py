"""The model reads what it is not sent any more."""

from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.history.capability import MAX_RESULT_CHARS, ReadHistoryTool
from panpan.core.conversation import Conversation
from panpan.errors import ToolError
from panpan.types.events import Output
from panpan.types.messages import Compaction, Message
from tests.capabilities.compaction.conversations import answered, reading, replied, talking, used
from tests.fakes.context import context_in


async def told(root: Path, messages: list[Message], **arguments: Any) -> str:
    tool = ReadHistoryTool(lambda: messages)
    async for item in tool.run(tool.input_model(**arguments), context_in(root)):
        assert isinstance(item, Output)
        return item.text
    raise AssertionError("no output")


MESSAGES: list[Message] = [
    *talking(0, 10),
    *reading(1, 40),
    *talking(2, 10),
    replied("", used("x")),
    answered("x", "boom", is_error=True),
]


async def test_read_history_lists_the_users_prompts_by_default(tmp_path: Path) -> None:
    text = await told(tmp_path, MESSAGES)

    assert "8 messages" in text
    assert "[1] question 0" in text
    assert "[5] question 2" in text
    assert "content" not in text


async def test_read_history_shows_a_call_with_its_result(tmp_path: Path) -> None:
    text = await told(tmp_path, MESSAGES, call="read1")

    assert "file1.py" in text
    assert "content 1 xxx" in text
    assert "question" not in text


async def test_read_history_reports_an_unknown_call(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no call nope"):
        await told(tmp_path, MESSAGES, call="nope")


async def test_read_history_finds_text_in_any_case_newest_first(tmp_path: Path) -> None:
    text = await told(tmp_path, MESSAGES, query="QUESTION")

    assert text.index("[5]") < text.index("[1]")
    assert "nothing found" in await told(tmp_path, MESSAGES, query="needle")
    assert "[1]" not in await told(tmp_path, MESSAGES, query="question", first=2)


async def test_read_history_shows_a_range_word_for_word(tmp_path: Path) -> None:
    text = await told(tmp_path, MESSAGES, first=7, last=8)

    assert "Call of Read (x)" in text
    assert "Error of Read (x)" in text
    assert "boom" in text
    assert "question" not in text


async def test_read_history_puts_long_text_into_a_file(tmp_path: Path) -> None:
    text = await told(tmp_path, reading(1, 200_000), call="read1")

    assert len(text) <= MAX_RESULT_CHARS
    assert "history" in text


async def test_read_history_shows_messages_that_were_compacted(tmp_path: Path) -> None:
    conversation = Conversation(messages=[*reading(1), *talking(2)])
    last = conversation.messages[-1]
    conversation.compact(Compaction("auto", last.uuid, 9, 5, kept_from=last.uuid))

    assert len(conversation.sent) == 1
    assert "content 1" in await told(tmp_path, conversation.messages, query="content 1")
