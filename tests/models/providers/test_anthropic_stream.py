import json
from typing import Any

import anyio
import pytest

from panpan.errors import ContextOverflowError, ProviderError, RateLimitError, RetryableError, StreamError
from panpan.models.providers.anthropic import AnthropicProvider, AnthropicReply
from panpan.models.reply import ReplyBuilder
from panpan.models.transport import SseParser, Transport
from panpan.types.content import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from panpan.types.llm import ModelRequest
from panpan.types.messages import AssistantMessage, Usage, UserMessage
from tests.models.loopback import Answer, serving
from tests.models.wire import HELLO, OPTIONS, ask
from tests.models.wire import anthropic_event as event

START = event(
    "message_start",
    message={
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 4},
    },
)
STOP = event("message_stop")


def block(index: int, kind: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=kind),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(index: int, *pieces: str) -> list[bytes]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def call(index: int, *pieces: str, tool_use_id: str = "toolu_1") -> list[bytes]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(index, {"type": "tool_use", "id": tool_use_id, "name": "Read", "input": {}}, *deltas)


def end(reason: str | None, **usage: int | None) -> list[bytes]:
    return [event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage), STOP]


def unopened() -> None:
    raise AssertionError("nothing is sent")


def events_of(*reads: bytes, taken_ids: frozenset[str] = frozenset()) -> list[StreamEvent]:
    """Return the events of a reply that comes in these reads, without a server."""
    reply = AnthropicReply(
        ReplyBuilder(model="asked", taken_ids=taken_ids), Transport(provider="vendor", open_client=unopened)
    )
    parser = SseParser()
    events: list[StreamEvent] = []
    for read in reads:
        reply.read(parser.feed(read))
        events += reply.builder.take()
    assert reply.is_whole
    return events


def message_of(*events: bytes, **options: Any) -> AssistantMessage:
    message = events_of(b"".join(events), **options)[-1]
    assert isinstance(message, AssistantMessage)
    return message


async def asked(*events: bytes, **answer: Any) -> AssistantMessage:
    async with serving(Answer([b"".join(events)], **answer)) as server:
        provider = AnthropicProvider(api_key="k", base_url=server.url, name="vendor")
        try:
            return await ask(provider)
        finally:
            await provider.aclose()


def test_reply_with_every_kind_of_block_is_read_in_order() -> None:
    # given the kinds of events of https://platform.claude.com/docs/en/build-with-claude/streaming
    stream = [
        START,
        event("ping"),
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Let me "},
            {"type": "thinking_delta", "thinking": "see."},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        *block(1, {"type": "redacted_thinking", "data": "ZW5j"}),
        *text(2, "Grü", "ße"),
        *call(3, "", '{"path"', ': "a.py"}'),
        *end("tool_use", output_tokens=89, input_tokens=9),
    ]

    # when all of it comes in one read
    *events, message = events_of(b"".join(stream))

    # then
    thinking = ThinkingBlock(thinking="Let me see.", signature="c2ln")
    use = ToolUseBlock(id="toolu_1", name="Read", input={"path": "a.py"})
    so_far = Usage(input_tokens=9, output_tokens=1, cache_read_input_tokens=4)
    assert events == [
        ReplyStarted("msg_1", "claude-sonnet-4-5-20250929", so_far),
        BlockStarted(0, "thinking"),
        ThinkingDelta(0, "Let me see."),
        BlockFinished(0, thinking),
        BlockStarted(1, "redacted_thinking"),
        BlockFinished(1, RedactedThinkingBlock(data="ZW5j")),
        BlockStarted(2, "text"),
        TextDelta(2, "Grüße"),
        BlockFinished(2, TextBlock(text="Grüße")),
        BlockStarted(3, "tool_use", "toolu_1", "Read"),
        ToolInputDelta(3, '{"path": "a.py"}'),
        BlockFinished(3, use),
    ]
    assert isinstance(message, AssistantMessage)
    assert message.content == (thinking, RedactedThinkingBlock(data="ZW5j"), TextBlock(text="Grüße"), use)
    assert message.usage == Usage(input_tokens=9, output_tokens=89, cache_read_input_tokens=4)
    assert (message.model, message.stop_reason) == ("asked", "tool_use")


@pytest.mark.parametrize("size", [1, 3, 50])
def test_reply_does_not_depend_on_chunk_boundaries(size: int) -> None:
    data = b"".join([START, *text(0, "Grüße 🎈"), *call(1, '{"a":', ' "é"}'), *end("tool_use", output_tokens=1)])
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    message = events_of(*chunks)[-1]

    assert isinstance(message, AssistantMessage)
    assert (message.text, message.tool_uses[0].input) == ("Grüße 🎈", {"a": "é"})


@pytest.mark.parametrize(
    ("wire", "ours"),
    [
        *((reason, reason) for reason in ("end_turn", "max_tokens", "stop_sequence", "pause_turn", "refusal")),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
        ("something_new", "unknown"),
        ("interrupted", "unknown"),
        (None, "unknown"),
    ],
)
def test_stop_reasons_are_translated(wire: str | None, ours: str) -> None:
    assert (message_of(START, *text(0, "x"), *end(wire))).stop_reason == ours


def test_unknown_events_and_blocks_are_skipped() -> None:
    message = message_of(
        START,
        b": comment\n\ndata:\n\n",
        event("brand_new_event", data={"a": 1}),
        *block(0, {"type": "server_tool_use", "id": "s"}, {"type": "input_json_delta", "partial_json": '{"q":'}),
        *block(1, {"type": "text", "text": ""}, {"type": "citations_delta", "citation": {}}, {"type": "new_delta"}),
        *text(2, "kept"),
        *end("end_turn"),
    )

    assert [item for item in message.content if isinstance(item, TextBlock) and item.text] == [TextBlock(text="kept")]


def test_usage_is_the_largest_reported() -> None:
    message = message_of(START, *end("end_turn", input_tokens=0, output_tokens=7, cache_creation_input_tokens=2))
    silent = message_of(START, *end("end_turn", input_tokens=None))

    counts = {"input_tokens": 9, "cache_read_input_tokens": 4}
    assert message.usage == Usage(**counts, output_tokens=7, cache_creation_input_tokens=2)
    assert silent.usage == Usage(**counts, output_tokens=1)


def test_incomplete_arguments_never_run() -> None:
    cut = message_of(START, *call(0, '{"path": "a'), *end("max_tokens"))
    nothing = message_of(START, *call(0), *end("max_tokens"))
    broken = message_of(START, *call(0, '{"path": "a'), *end("tool_use"))
    without = message_of(START, *call(0, ""), *end("tool_use"))

    assert "cut off by the output limit" in str(cut.tool_uses[0].input_error)
    assert "cut off by the output limit" in str(nothing.tool_uses[0].input_error)
    assert "not whole, valid JSON" in str(broken.tool_uses[0].input_error)
    assert (without.tool_uses[0].input, without.tool_uses[0].input_error) == ({}, None)


def test_taken_ids_are_changed() -> None:
    message = message_of(START, *call(0, "{}"), *call(1, "{}"), *end("tool_use"), taken_ids=frozenset({"toolu_1"}))

    assert [use.id for use in message.tool_uses] == ["toolu_1-2", "toolu_1-3"]
    assert [use.input_error is None for use in message.tool_uses] == [True, False]


def test_sparse_servers_are_understood() -> None:
    # no name lines, no message_start, arguments in the start of the block, no content_block_stop
    given = {"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}}
    parts = [
        event("content_block_start", index=0, content_block={"type": "text", "text": "Hi"}),
        event("content_block_start", index=1, content_block=given),
        *end("tool_use"),
    ]

    message = message_of(*(b"data" + part.partition(b"\ndata")[2] for part in parts))
    more = {"type": "input_json_delta", "partial_json": '{"a": 2}'}
    both = message_of(START, *block(0, given, more), *end("tool_use"))

    assert (message.text, message.tool_uses[0].input) == ("Hi", {"a": 1})
    assert both.tool_uses[0].input == {"a": 2}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, RetryableError),
        ({"type": "rate_limit_error", "message": "Slow down"}, RateLimitError),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, ContextOverflowError),
        ({"type": "invalid_request_error", "message": "bad"}, ProviderError),
    ],
)
def test_mid_stream_error_is_raised_by_its_type(error: dict[str, str], expected: type[ProviderError]) -> None:
    with pytest.raises(ProviderError) as caught:
        message_of(START, *text(0, "x"), event("error", error=error, request_id="req_7"))

    assert type(caught.value) is expected
    assert caught.value.request_id == "req_7"


@pytest.mark.parametrize("is_cut", [True, False])
async def test_stream_that_ends_too_early_is_an_error(is_cut: bool) -> None:
    events = [START, *text(0, "x"), *call(1, "{}"), *end("tool_use")]
    assert events[-1] == STOP
    for count in range(len(events) - 1):
        with pytest.raises(StreamError, match="vendor"):
            await asked(*events[:count], is_cut=is_cut)


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "max_tokens", "refusal"])
async def test_reply_that_lacks_only_message_stop_is_complete(reason: str, is_cut: bool) -> None:
    events = [START, *text(0, "x"), *call(1, '{"a": 1}'), *end(reason, output_tokens=9)]

    without, whole = await asked(*events[:-1], is_cut=is_cut), await asked(*events)

    same = {"uuid": whole.uuid, "duration_s": whole.duration_s}
    assert without.model_copy(update=same) == whole


OPEN = [
    [START, *text(0, "x")[:-1], *end("end_turn")[:-1]],
    [START, *call(0, '{"a"')[:-1], *end("tool_use")[:-1]],
    [START, *block(0, {"type": "something_new"})[:-1], *end("end_turn")[:-1]],
    [START, *text(0, "x"), *end(None)[:-1]],
]


@pytest.mark.parametrize("events", OPEN)
async def test_reply_with_an_open_block_or_no_reason_is_cut(events: list[bytes]) -> None:
    with pytest.raises(StreamError):
        await asked(*events)


async def test_error_in_place_of_message_stop_is_raised() -> None:
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    with pytest.raises(RetryableError, match="Overloaded"):
        await asked(START, *text(0, "x"), *end("end_turn")[:-1], error)


async def test_complete_reply_survives_a_later_cut() -> None:
    assert (await asked(START, *text(0, "x"), *end("end_turn"), is_cut=True)).text == "x"


@pytest.mark.parametrize("data", [b"data: {no json}\n\n", b"data: [1]\n\n", b'data: "text"\n\n'])
def test_event_that_is_no_object_is_a_stream_error(data: bytes) -> None:
    with pytest.raises(StreamError, match="not a JSON object"):
        message_of(START, data, *end("end_turn"))


async def test_reply_as_one_document_is_understood() -> None:
    document = {
        "id": "msg_1",
        "type": "message",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }

    message = await asked(json.dumps(document).encode(), headers={"content-type": "application/json"})

    assert message.content == (
        ThinkingBlock(thinking="hm", signature="s"),
        TextBlock(text="Hi"),
        ToolUseBlock(id="t1", name="Read", input={"a": 1}),
    )
    assert (message.stop_reason, message.usage) == ("tool_use", Usage(input_tokens=3, output_tokens=4))


async def test_document_that_is_no_message_is_refused() -> None:
    with pytest.raises(ProviderError, match="check the base URL"):
        await asked(b'{"choices": []}', headers={"content-type": "application/json"})


async def test_tokens_are_counted_by_the_server() -> None:
    async with serving(Answer([b'{"input_tokens": 2095}'], headers={"content-type": "application/json"})) as server:
        provider = AnthropicProvider(api_key="k", base_url=server.url)
        count = await provider.count_tokens(HELLO, OPTIONS)
        await provider.aclose()

    assert (count, server.requests[0].path) == (2095, "/v1/messages/count_tokens")


async def test_server_that_cannot_count_gives_none() -> None:
    async with serving(Answer([b"{}"], status=404, headers={"content-type": "application/json"})) as server:
        provider = AnthropicProvider(api_key="k", base_url=server.url)
        assert await provider.count_tokens(HELLO, OPTIONS) is None
        await provider.aclose()


def test_piece_of_a_closed_block_is_a_stream_error() -> None:
    stray = event("content_block_delta", index=3, delta={"type": "text_delta", "text": "x"})

    with pytest.raises(StreamError, match="closed block"):
        message_of(START, text(0, "x")[0], stray, *end("end_turn"))


async def test_empty_request_is_refused_before_sending() -> None:
    provider = AnthropicProvider(api_key="k", base_url="http://127.0.0.1:1")

    with pytest.raises(ProviderError, match="no message to send"):
        await ask(provider, ModelRequest("sys", (), [UserMessage.of("  ")]))


def test_provider_runs_on_trio() -> None:
    async def main() -> None:
        assert (await asked(START, *text(0, "x"), *end("end_turn"))).text == "x"

    anyio.run(main, backend="trio")
