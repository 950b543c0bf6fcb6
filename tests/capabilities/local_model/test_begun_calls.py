"""A fault of the small model that is mended: it says that it has changed a file, and has only read it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest

from panpan.capabilities.local_model.call_repair import add_claimed_call
from panpan.models.reply import ReplyBuilder
from panpan.types.content import ToolUseBlock
from panpan.types.events import StreamEvent
from panpan.types.messages import AssistantMessage, Message, Usage, UserMessage

WORDS = UserMessage.of("a.txt should say tea, please correct it")
READ = ToolUseBlock(id="c1", name="Read", input={"file_path": "./a.txt"})
BEGUN = '{"file_path": "a.txt", "old_string": "'
CLAIM = "a.txt now says tea."


def called(*uses: ToolUseBlock) -> AssistantMessage:
    return AssistantMessage(content=uses, model="m", stop_reason="tool_use")


def reply(text: str = "", *, tool: str = "", arguments: str = "", stop: Any = "end_turn") -> list[StreamEvent]:
    """Return a provider's events, with as much of a call as `arguments`."""
    builder = ReplyBuilder(model="m")
    if text:
        builder.add("text", text)
    if tool:
        builder.open_block("tool_use", tool_name=tool).parts.append(arguments)
    builder.usage = Usage(input_tokens=100, output_tokens=7)
    builder.finish("tool_use" if tool else stop)
    return builder.take()


class Model:
    """Finishes what was begun with `rest`, or answers in words."""

    def __init__(self, rest: Sequence[StreamEvent]) -> None:
        self.rest = rest
        self.begun: list[str] = []

    async def ask(self, text: str) -> AsyncGenerator[StreamEvent, None]:
        self.begun.append(text)
        for event in self.rest:
            yield event


async def whole(events: Sequence[StreamEvent], messages: Sequence[Message], model: Model) -> list[StreamEvent]:
    async def stream() -> AsyncIterator[StreamEvent]:
        for event in events:
            yield event

    return [event async for event in add_claimed_call(stream(), messages, model.ask)]


def finishing() -> Model:
    """llama.cpp tells what follows on the beginning, and not the beginning."""
    return Model(reply(tool="Edit", arguments='coffee", "new_string": "tea"}'))


async def test_claimed_change_goes_on_with_the_edit() -> None:
    model = finishing()

    events = await whole(reply(CLAIM), [WORDS, called(READ)], model)

    last = events[-1]
    assert isinstance(last, AssistantMessage)
    assert model.begun == ['```json\n{"name": "Edit", "arguments": ' + BEGUN]
    assert (last.text, last.stop_reason) == (CLAIM, "tool_use")
    (use,) = last.tool_uses
    assert (use.name, use.input_error) == ("Edit", None)
    assert use.input == {"file_path": "a.txt", "old_string": "coffee", "new_string": "tea"}
    assert last.usage == Usage(input_tokens=100, output_tokens=14)


@pytest.mark.parametrize(
    "rest",
    [
        reply("I did it."),
        reply(tool="Bash", arguments=json.dumps({"command": "rm a.txt"})),
        reply(tool="Edit", arguments='coffee", "new_str'),
        reply(tool="Edit", arguments='coffee"} and more'),
    ],
)
async def test_begun_call_not_finished_as_begun_is_dropped(rest: list[StreamEvent]) -> None:
    events = reply(CLAIM)

    assert await whole(events, [WORDS, called(READ)], Model(rest)) == events


@pytest.mark.parametrize(
    ("words", "calls", "events"),
    [
        (WORDS.text, [READ], reply("a.txt says coffee.")),
        ("which tea did a.txt name yesterday?", [READ], reply(CLAIM)),
        ("What should the port be set to?", [READ], reply("The port has to be changed, it is set to 80.")),
        ("tell me what I have to change", [READ], reply("Line 3 should be corrected.")),
        (WORDS.text, [], reply(CLAIM)),
        (WORDS.text, [READ, READ.model_copy(update={"id": "c2", "name": "Edit"})], reply(CLAIM)),
        (WORDS.text, [READ, READ.model_copy(update={"id": "c2", "name": "Bash"})], reply(CLAIM)),
        (WORDS.text, [READ], reply(CLAIM, tool="Edit", arguments="{}")),
        (WORDS.text, [READ], reply(CLAIM, stop="max_tokens")),
    ],
    ids=[
        "no claim",
        "a question",
        "a question about a change",
        "an order to tell",
        "nothing read",
        "edited",
        "a command",
        "calls itself",
        "cut off",
    ],
)
async def test_other_replies_begin_no_call(words: str, calls: list[ToolUseBlock], events: list[StreamEvent]) -> None:
    model = finishing()
    messages = [WORDS, called(READ), UserMessage.of(words), *[called(use) for use in calls]]

    assert await whole(events, messages, model) == events
    assert model.begun == []


async def test_reply_without_words_of_the_user_begins_no_call() -> None:
    model, events = finishing(), reply(CLAIM)

    assert await whole(events, [called(READ)], model) == events
    assert model.begun == []


async def test_server_that_repeats_the_whole_call_is_understood() -> None:
    arguments = {"file_path": "a.txt", "old_string": "coffee", "new_string": "tea"}
    model = Model(reply(tool="Edit", arguments=json.dumps(arguments)))

    last = (await whole(reply(CLAIM), [WORDS, called(READ)], model))[-1]

    assert isinstance(last, AssistantMessage)
    assert [use.input for use in last.tool_uses] == [arguments]
