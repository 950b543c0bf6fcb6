"""Streams of events that no server should send: each ends in a valid message or in an error of our own."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ProviderError
from panpan.models.providers.anthropic import AnthropicReply
from panpan.models.providers.anthropic_request import encode_reply
from panpan.models.providers.openai_compatible import OpenAIReply
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import GPT
from panpan.models.reply import ReplyBuilder
from panpan.models.transport import SseParser, Transport, WholeReply
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent
from panpan.types.messages import AssistantMessage

ODD = st.sampled_from(
    (None, True, 0, 1, -1, 10**30, 1e308, "", "x", "text", "tool_use", "thinking", '{"a": 1}', [], [None], ["x"], {})
) | st.sampled_from(({"a": 1}, {"type": "tool_use", "input": 7}, {"name": 1}, {"function": {"arguments": [1]}}))


def fields(*names: str, **typical: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with some of these fields, each with what is typical for it or something odd."""
    values = {name: typical[name] | ODD if name in typical else ODD for name in (*names, *typical)}
    return st.fixed_dictionaries({}, optional=values)


TEXT = st.sampled_from(("", "a", "{", "}", '{"p": "a"}', '"', "é🎈"))
INDEX = st.integers(0, 2)
BLOCKS = st.sampled_from(("text", "thinking", "redacted_thinking", "tool_use", "new"))
BLOCK = fields("text", "data", "signature", "id", "name", "input", type=BLOCKS)
DELTAS = st.sampled_from(("text_delta", "input_json_delta", "thinking_delta", "signature_delta"))
DELTA = fields("signature", "stop_reason", text=TEXT, partial_json=TEXT, thinking=TEXT, type=DELTAS)
KINDS = ("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "ping")
ANTHROPIC = fields(
    "message", "usage", "error", index=INDEX, content_block=BLOCK, delta=DELTA, type=st.sampled_from(KINDS)
)

CALL = fields("type", id=st.sampled_from(("1", "2")), index=INDEX, function=fields("name", arguments=TEXT))
CALLS = st.lists(CALL)
CHUNK = fields("role", "refusal", "function_call", content=TEXT, reasoning_content=TEXT, tool_calls=CALLS)
REASON = st.sampled_from((None, "stop", "length", "tool_calls"))
CHOICE = fields("usage", index=st.just(0), delta=CHUNK, message=CHUNK, finish_reason=REASON)
OPENAI = fields("id", "model", "usage", choices=st.lists(CHOICE, max_size=2))


def unopened() -> None:
    raise AssertionError("nothing is sent")


TRANSPORT = Transport(provider="vendor", open_client=unopened)


def check(events: list[StreamEvent]) -> None:
    """Check properties of every reply, whatever the server sent."""
    message = events[-1]
    assert isinstance(message, AssistantMessage)
    assert [event.block for event in events if isinstance(event, BlockFinished)] == list(message.content)
    assert [event.index for event in events if isinstance(event, BlockStarted)] == list(range(len(message.content)))
    ids = [use.id for use in message.tool_uses]
    assert len(set(ids)) == len(ids)
    for data in (
        encode_reply(message, model="m"),
        OpenAIEncoder(GPT).encode_reply(message, model="m"),
    ):
        assert data is None or json.loads(data)
    AssistantMessage.model_validate_json(message.model_dump_json())


def stream_of(documents: list[dict[str, Any]]) -> list[bytes]:
    return [b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents]


@given(st.lists(ANTHROPIC, max_size=12))
def test_messages_api_stream_may_say_anything(documents: list[dict[str, Any]]) -> None:
    reply, parser, events = AnthropicReply(ReplyBuilder(model="m"), TRANSPORT), SseParser(), []
    try:
        for data in [*stream_of(documents), b'data: {"type": "message_stop"}\n\n']:
            reply.read(parser.feed(data))
            events += reply.builder.take()
    except ProviderError:
        return
    check(events)


@given(st.lists(OPENAI, max_size=12))
def test_chat_completions_stream_may_say_anything(documents: list[dict[str, Any]]) -> None:
    reply, parser, events = OpenAIReply(ReplyBuilder(model="m"), TRANSPORT), SseParser(), []
    try:
        for data in [*stream_of(documents), b"data: [DONE]\n\n"]:
            reply.read(parser.feed(data))
            events += reply.builder.take()
        reply.finish()
    except ProviderError:
        return
    check(events + reply.builder.take())


@given(fields("usage", "stop_reason", "id", content=st.lists(BLOCK), type=st.just("message")), OPENAI)
def test_whole_document_may_say_anything(message: dict[str, Any], completion: dict[str, Any]) -> None:
    anthropic = AnthropicReply(ReplyBuilder(model="m"), TRANSPORT)
    openai = OpenAIReply(ReplyBuilder(model="m"), TRANSPORT)
    try:
        anthropic.read(WholeReply(message))
    except ProviderError:
        pass
    else:
        check(anthropic.builder.take())
    try:
        openai.read(WholeReply(completion))
        openai.finish()
    except ProviderError:
        pass
    else:
        check(openai.builder.take())


@pytest.mark.parametrize("arguments", ["1e999", "[" * 150 + "]" * 150])
def test_arguments_that_cannot_be_sent_back_never_run(arguments: str) -> None:
    start = '{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "input": {"a": %s}}}'
    anthropic = AnthropicReply(ReplyBuilder(model="m"), TRANSPORT)
    anthropic.read(SseParser().feed(f'data: {start % arguments}\n\ndata: {{"type": "message_stop"}}\n\n'.encode()))
    delta = '{"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": %s}}}]}}]}'
    openai = OpenAIReply(ReplyBuilder(model="m"), TRANSPORT)
    openai.read(SseParser().feed(f"data: {delta % arguments}\n\ndata: [DONE]\n\n".encode()))
    openai.finish()

    check(anthropic.builder.take())
    check(openai.builder.take())
