import pytest

from panpan.models.reply import CUT_OFF, REFUSED, REPEATED_ID, ReplyBuilder
from panpan.types.content import TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from panpan.types.messages import AssistantMessage, StopReason, Usage


def call(builder: ReplyBuilder, wire_id: str, arguments: str, name: str = "Read") -> None:
    block = builder.open_block("tool_use", tool_use_id=wire_id, tool_name=name)
    block.parts.append(arguments)
    builder.close_block()


def finished(builder: ReplyBuilder, stop_reason: StopReason | None = "tool_use") -> AssistantMessage:
    builder.finish(stop_reason)
    events = builder.take()
    message = events[-1]
    assert isinstance(message, AssistantMessage)
    told = [event.block for event in events if isinstance(event, BlockFinished)]
    assert told == list(message.content)[len(message.content) - len(told) :]
    return message


def test_builder_yields_block_by_block_and_then_the_message() -> None:
    builder = ReplyBuilder(model="asked")
    builder.usage = Usage(input_tokens=3)
    builder.start(message_id="m1", model="answered")
    builder.add("thinking", "hm")
    builder.add("text", "Hi")
    call(builder, "t1", '{"a": 1}')

    builder.finish("tool_use")
    *events, message = builder.take()

    use = ToolUseBlock(id="t1", name="Read", input={"a": 1})
    assert events == [
        ReplyStarted("m1", "answered", Usage(input_tokens=3)),
        BlockStarted(0, "thinking"),
        ThinkingDelta(0, "hm"),
        BlockFinished(0, ThinkingBlock(thinking="hm")),
        BlockStarted(1, "text"),
        TextDelta(1, "Hi"),
        BlockFinished(1, TextBlock(text="Hi")),
        BlockStarted(2, "tool_use", "t1", "Read"),
        ToolInputDelta(2, '{"a": 1}'),
        BlockFinished(2, use),
    ]
    assert isinstance(message, AssistantMessage)
    assert message.content == (ThinkingBlock(thinking="hm"), TextBlock(text="Hi"), use)
    assert (message.model, message.stop_reason) == ("asked", "tool_use")
    assert isinstance(events[0], ReplyStarted)
    assert events[0].uuid == message.uuid


def test_deltas_between_two_takes_are_joined() -> None:
    builder = ReplyBuilder(model="m")
    taken: list[list[StreamEvent]] = []
    for pieces in (["a", "b", "c"], [], ["d"]):
        for piece in pieces:
            builder.add("text", piece)
        taken.append([event for event in builder.take() if isinstance(event, TextDelta)])

    assert taken == [[TextDelta(0, "abc")], [], [TextDelta(0, "d")]]
    assert finished(builder, "end_turn").text == "abcd"


@pytest.mark.parametrize("arguments", ["", '{"path": "a', '{"path": '])
def test_call_cut_by_the_output_limit_does_not_run(arguments: str) -> None:
    builder = ReplyBuilder(model="m")
    call(builder, "t1", '{"a": 1}')
    call(builder, "t2", arguments)

    whole, cut = finished(builder, "max_tokens").tool_uses

    assert (whole.input, whole.input_error) == ({"a": 1}, None)
    assert (cut.input, cut.input_error) == ({}, CUT_OFF)
    assert "cut off by the output limit" in CUT_OFF


@pytest.mark.parametrize("arguments", ["", '{"path": "a'])
def test_call_in_a_filtered_reply_does_not_run(arguments: str) -> None:
    builder = ReplyBuilder(model="m")
    call(builder, "t1", arguments)

    (cut,) = finished(builder, "refusal").tool_uses

    assert (cut.input, cut.input_error) == ({}, REFUSED)
    assert "refused or filtered" in REFUSED


def test_complete_call_before_the_output_limit_runs() -> None:
    builder = ReplyBuilder(model="m")
    call(builder, "t1", '{"a": 1}')

    assert finished(builder, "max_tokens").tool_uses[0].input_error is None


def test_call_without_arguments_runs_with_none() -> None:
    builder = ReplyBuilder(model="m")
    call(builder, "t1", "")
    call(builder, "t2", "")

    assert [(use.input, use.input_error) for use in finished(builder).tool_uses] == [({}, None), ({}, None)]


def test_call_with_broken_arguments_does_not_stop_the_next() -> None:
    builder = ReplyBuilder(model="m")
    call(builder, "t1", '{"a": ')
    call(builder, "t2", "[1]")
    call(builder, "t3", '{"a": 1}')

    first, second, third = finished(builder).tool_uses

    assert first.input_error is not None
    assert "not whole, valid JSON" in first.input_error
    assert second.input_error is not None
    assert "not a JSON object" in second.input_error
    assert third.input_error is None


def test_call_with_an_id_of_the_conversation_is_renamed_and_runs() -> None:
    builder = ReplyBuilder(model="m", taken_ids={"call_0", "call_0-2"})
    call(builder, "call_0", "{}")

    (use,) = finished(builder).tool_uses

    assert (use.id, use.input_error) == ("call_0-3", None)


def test_call_with_a_repeated_id_in_a_reply_does_not_run() -> None:
    builder = ReplyBuilder(model="m")
    call(builder, "t1", '{"a": 1}')
    call(builder, "t1", '{"a": 2}')

    first, second = finished(builder).tool_uses

    assert (first.id, first.input_error) == ("t1", None)
    assert (second.id, second.input, second.input_error) == ("t1-2", {}, REPEATED_ID)


def test_calls_without_ids_get_different_ones_and_run() -> None:
    builder = ReplyBuilder(model="m", taken_ids={"call"})
    call(builder, "", "{}")
    call(builder, "", "{}")

    assert [(use.id, use.input_error) for use in finished(builder).tool_uses] == [("call-2", None), ("call-3", None)]


@pytest.mark.parametrize(("arguments", "reason"), [(None, "unknown"), ("{}", "tool_use")])
def test_missing_stop_reason_follows_from_the_blocks(arguments: str | None, reason: str) -> None:
    builder = ReplyBuilder(model="m")
    builder.add("text", "Hi")
    if arguments is not None:
        call(builder, "t1", arguments)

    assert finished(builder, None).stop_reason == reason
