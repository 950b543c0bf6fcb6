from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.cassettes.recorded_reply import RecordedReply, event_json, event_of, recorded_reply
from panpan.capabilities.cassettes.requests import plain
from panpan.errors import ConfigError, ContextOverflowError, RateLimitError, StreamError
from panpan.types.content import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Waiting,
)
from panpan.types.messages import AssistantMessage, Usage

TEXT = st.text(max_size=20)
INDEX = st.integers(0, 9)
BLOCKS = st.one_of(
    st.builds(TextBlock, text=TEXT),
    st.builds(ThinkingBlock, thinking=TEXT, signature=TEXT),
    st.builds(RedactedThinkingBlock, data=TEXT),
    st.builds(ToolUseBlock, id=TEXT, name=TEXT, input=st.dictionaries(TEXT, TEXT | st.integers() | st.none())),
)
EVENTS: st.SearchStrategy[StreamEvent] = st.one_of(
    st.builds(Waiting, TEXT),
    st.builds(ReplyStarted, TEXT, TEXT, st.builds(Usage, input_tokens=INDEX)),
    st.builds(BlockStarted, INDEX, st.sampled_from(["text", "thinking", "redacted_thinking"])),
    st.builds(BlockStarted, INDEX, st.just("tool_use"), TEXT, TEXT),
    st.builds(TextDelta, INDEX, TEXT),
    st.builds(ThinkingDelta, INDEX, TEXT),
    st.builds(ToolInputDelta, INDEX, TEXT),
    st.builds(BlockFinished, INDEX, BLOCKS),
    st.builds(AssistantMessage, content=st.tuples(BLOCKS), model=TEXT, usage=st.builds(Usage, output_tokens=INDEX)),
)


@given(EVENTS)
def test_stream_event_round_trips(event: StreamEvent) -> None:
    assert event_of(plain(event_json(event))) == event


@pytest.mark.parametrize(
    "value", [["sound", 0, "x"], ["text", "0", "x"], {"event": "explosion"}, None, {"event": "block_started"}]
)
def test_value_that_is_no_event_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not an event"):
        event_of(value)


@pytest.mark.parametrize(
    "failure", [RateLimitError("slow down", status=429), ContextOverflowError("long"), StreamError("cut")]
)
def test_failure_round_trips(failure: Any) -> None:
    reply = RecordedReply(((0.25, TextDelta(0, "I")),), failure)

    again = recorded_reply(plain(reply.as_json()), "tape:1")

    assert again.events == reply.events
    assert (type(again.failure), str(again.failure)) == (type(failure), str(failure))
    assert again.failure is not None
    assert again.failure.status == failure.status


def test_damaged_reply_is_named_with_its_line() -> None:
    with pytest.raises(ConfigError, match="tape:7: the reply cannot be read: there is no 'events'"):
        recorded_reply({}, "tape:7")
