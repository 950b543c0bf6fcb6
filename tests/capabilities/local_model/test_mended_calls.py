"""The calls of the small model are mended before anything above sees them, and all that is told of one agrees."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from panpan.capabilities.local_model.call_repair import repair_calls
from panpan.models.reply import ReplyBuilder
from panpan.types.content import ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent, ToolInputDelta
from panpan.types.messages import AssistantMessage, Message, UserMessage


def edit(old: str, new: str, path: str = "a.txt") -> tuple[str, dict[str, Any]]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new}


def read(path: str = "a.txt") -> tuple[str, dict[str, Any]]:
    return "Read", {"file_path": path}


def events_of(*calls: tuple[str, dict[str, Any]], text: str = "") -> list[StreamEvent]:
    """Return a provider's events for a reply that comes in many pieces."""
    builder = ReplyBuilder(model="m")
    events: list[StreamEvent] = []
    for piece in text:
        builder.add("text", piece)
        events += builder.take()
    for name, arguments in calls:
        block = builder.open_block("tool_use", tool_name=name)
        for piece in json.dumps(arguments):
            block.parts.append(piece)
            events += builder.take()
    builder.finish("tool_use" if calls else "end_turn")
    return events + builder.take()


async def mended(events: Sequence[StreamEvent], messages: Sequence[Message] = ()) -> list[StreamEvent]:
    async def stream() -> AsyncIterator[StreamEvent]:
        for event in events:
            yield event

    return [event async for event in repair_calls(stream(), messages)]


def told_of(events: Sequence[StreamEvent]) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a reply, after checking that its pieces, blocks and message tell of the same."""
    starts = {event.index: event.tool_name for event in events if isinstance(event, BlockStarted)}
    pieces: dict[int, str] = {}
    for event in events:
        if isinstance(event, ToolInputDelta):
            pieces[event.index] = pieces.get(event.index, "") + event.json
    blocks = [
        (event.index, event.block)
        for event in events
        if isinstance(event, BlockFinished) and isinstance(event.block, ToolUseBlock)
    ]
    last = events[-1]
    assert isinstance(last, AssistantMessage)
    assert [block for _, block in blocks] == list(last.tool_uses)
    assert [(starts[index], json.loads(pieces[index])) for index, _ in blocks] == [
        (block.name, block.input) for _, block in blocks
    ]
    return [(block.name, dict(block.input)) for _, block in blocks]


async def a_reply(*calls: tuple[str, dict[str, Any]]) -> AssistantMessage:
    last = events_of(*calls)[-1]
    assert isinstance(last, AssistantMessage)
    return last


async def test_edit_of_an_unread_file_becomes_its_reading() -> None:
    events = await mended(events_of(edit("x", "y"), text="I change it."), [UserMessage.of("change x to y in a.txt")])

    assert told_of(events) == [read()]
    assert isinstance(events[-1], AssistantMessage)
    assert events[-1].text == "I change it."


async def test_edit_of_a_read_file_keeps_its_blank() -> None:
    messages = [UserMessage.of("green, please"), await a_reply(read())]

    assert told_of(await mended(events_of(edit(" blue", "green")), messages)) == [edit(" blue", " green")]


async def test_sed_replacement_becomes_an_edit_as_the_user_said() -> None:
    messages = [UserMessage.of("use green instead of blue in a.txt"), await a_reply(read())]
    sed = ("Bash", {"command": "sed -i 's/green/blue/g' a.txt"})
    name, arguments = edit("blue", "green")

    assert told_of(await mended(events_of(sed), messages)) == [(name, {**arguments, "replace_all": True})]
    assert told_of(await mended(events_of(sed), messages[:1])) == [read()]


async def test_reads_of_one_reply_are_known_to_its_later_calls() -> None:
    calls = [read("a.txt"), edit("x", "y", "a.txt"), edit("x", "y", "b.txt"), edit("x", "y", "b.txt")]

    assert told_of(await mended(events_of(*calls))) == [calls[0], calls[1], read("b.txt"), calls[3]]


async def test_text_passes_as_it_comes() -> None:
    events = events_of(text="so it is")

    assert await mended(events) == events
