import itertools
import json
import random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ContextOverflowError, ProviderError, RateLimitError, RetryableError, StreamError
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider, OpenAIReply
from panpan.models.providers.vendor_profiles import KIMI
from panpan.models.reply import ReplyBuilder
from panpan.models.transport import SseParser, Transport
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
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Usage, UserMessage
from tests.models.loopback import Answer, Stall, serving
from tests.models.wire import DONE, HELLO, ask, chunk, collect

STOP = chunk(finish_reason="stop") + DONE
CALLS = chunk(finish_reason="tool_calls") + DONE


def unopened() -> None:
    raise AssertionError("nothing is sent")


def events_of(*reads: bytes, taken_ids: frozenset[str] = frozenset()) -> list[StreamEvent]:
    """Return the events of a reply that comes in these reads, without a server."""
    transport = Transport(provider="vendor", open_client=unopened)
    reply = OpenAIReply(ReplyBuilder(model="asked", taken_ids=taken_ids), transport)
    parser = SseParser()
    events: list[StreamEvent] = []
    for read in reads:
        reply.read(parser.feed(read))
        events += reply.builder.take()
    reply.finish()
    return events + reply.builder.take()


def message_of(*reads: bytes, **options: Any) -> AssistantMessage:
    message = events_of(*reads, **options)[-1]
    assert isinstance(message, AssistantMessage)
    return message


def call(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """Return an entry of `delta.tool_calls`; `name` and `arguments` go into its function."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    entry = {"type": "function", "function": function, **fields}
    return entry if index is None else {"index": index, **entry}


def calls(*entries: dict[str, Any]) -> bytes:
    return b"".join(chunk({"tool_calls": [entry]}) for entry in entries)


def told(message: AssistantMessage) -> list[tuple[str, dict[str, Any]]]:
    assert all(use.input_error is None for use in message.tool_uses)
    return [(use.name, use.input) for use in message.tool_uses]


def test_reply_with_every_kind_of_block_is_read_in_order() -> None:
    *events, message = events_of(
        chunk({"role": "assistant", "content": ""})
        + chunk({"reasoning_content": "Let me "})
        + chunk({"reasoning_content": "see."})
        + chunk({"content": "Grü"})
        + chunk({"content": "ße"})
        + calls(call(0, id="c1", name="Read", arguments=""), call(0, arguments='{"a":'), call(0, arguments="1}"))
        + calls(call(1, id="c2", name="Glob", arguments='{"b": 2}'))
        + chunk(finish_reason="tool_calls")
        + chunk(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 4})
        + DONE
    )

    first, second = (
        ToolUseBlock(id="c1", name="Read", input={"a": 1}),
        ToolUseBlock(id="c2", name="Glob", input={"b": 2}),
    )
    assert events == [
        ReplyStarted("chatcmpl-1", "answered"),
        BlockStarted(0, "thinking"),
        ThinkingDelta(0, "Let me see."),
        BlockFinished(0, ThinkingBlock(thinking="Let me see.")),
        BlockStarted(1, "text"),
        TextDelta(1, "Grüße"),
        BlockFinished(1, TextBlock(text="Grüße")),
        BlockStarted(2, "tool_use", "c1", "Read"),
        ToolInputDelta(2, '{"a":1}'),
        BlockFinished(2, first),
        BlockStarted(3, "tool_use", "c2", "Glob"),
        ToolInputDelta(3, '{"b": 2}'),
        BlockFinished(3, second),
    ]
    assert isinstance(message, AssistantMessage)
    assert message.content == (ThinkingBlock(thinking="Let me see."), TextBlock(text="Grüße"), first, second)
    assert (message.model, message.stop_reason) == ("asked", "tool_use")
    assert message.usage == Usage(input_tokens=9, output_tokens=4)


READS = [("Read", {"p": "a"}), ("Read", {"p": "b"})]
A, B = '{"p": "a"}', '{"p": "b"}'


SPLIT: dict[str, list[dict[str, Any]]] = {
    "whole": [call(0, id="1", name="Read", arguments=A), call(1, id="2", name="Read", arguments=B)],
    "interleaved": [
        call(0, id="1", name="Read"),
        call(1, id="2", name="Read"),
        call(0, arguments=A[:4]),
        call(1, arguments=B[:4]),
        call(0, arguments=A[4:]),
        call(1, arguments=B[4:]),
    ],
    "no ids": [call(0, name="Read", arguments=A), call(1, name="Read", arguments=B)],
    "no ids, no indexes": [call(None, name="Read", arguments=A), call(None, name="Read", arguments=B)],
    "no indexes": [
        call(None, id="1", name="Read"),
        call(None, arguments=A),
        call(None, id="2", name="Read"),
        call(None, arguments=B),
    ],
    "no indexes, interleaved by id": [
        call(None, id="1", name="Read"),
        call(None, id="2", name="Read"),
        call(None, id="1", arguments=A),
        call(None, id="2", arguments=B),
    ],
    "every index 0": [call(0, id="1", name="Read", arguments=A), call(0, id="2", name="Read", arguments=B)],
    "every index 0, no ids": [call(0, name="Read", arguments=A), call(0, name="Read", arguments=B)],
    "id and name repeated": [
        call(number, id=str(number + 1), name="Read", arguments=text[start : start + 3])
        for number, text in enumerate((A, B))
        for start in range(0, len(text), 3)
    ],
    "one id for both": [call(number, id="1", name="Read", arguments=text) for number, text in enumerate((A, B))],
    "a new id in every delta": [
        call(0, id="1", name="Read"),
        call(0, id="x", arguments=A[:5]),
        call(0, id="y", arguments=A[5:]),
        call(1, id="2", name="Read"),
        call(1, id="z", arguments=B),
    ],
    "arguments as an object": [
        call(0, id="1", name="Read", arguments={"p": "a"}),
        call(1, id="2", name="Read", arguments={"p": "b"}),
    ],
    "a name in pieces": [
        call(0, id="1", name="Re"),
        call(0, name="ad"),
        call(0, arguments=A),
        call(1, id="2", name="Read", arguments=B),
    ],
    "nulls": [
        call(0, id="1", name="Read", arguments=None),
        call(0, id=None, name=None, arguments=A),
        call(1, id="2", name="Read", arguments=None),
        call(1, arguments=B),
    ],
    "odd indexes": [call(5, id="1", name="Read", arguments=A), call(2, id="2", name="Read", arguments=B)],
}


@pytest.mark.parametrize("entries", SPLIT.values(), ids=SPLIT)
def test_calls_are_assembled_from_sparse_servers(entries: list[dict[str, Any]]) -> None:
    one_read = message_of(calls(*entries) + CALLS)
    many_reads = message_of(*(calls(entry) for entry in entries), CALLS)
    one_chunk = message_of(chunk({"tool_calls": entries}) + CALLS)

    for message in (one_read, many_reads, one_chunk):
        if {entry.get("id") for entry in entries} == {"1"}:  # two calls with one id: the second must not run
            assert [use.input_error is None for use in message.tool_uses] == [True, False]
            continue
        assert told(message) == READS
        assert len({use.id for use in message.tool_uses}) == 2


def test_older_form_of_a_call_is_understood() -> None:
    stream = chunk({"function_call": {"name": "Read", "arguments": ""}}) + chunk({"function_call": {"arguments": A}})

    message = message_of(stream + chunk(finish_reason="function_call") + DONE)

    assert told(message) == READS[:1]
    assert message.stop_reason == "tool_use"


def test_complete_call_is_yielded_when_the_next_begins() -> None:
    events = events_of(
        calls(call(0, id="1", name="Read", arguments=A)),
        calls(call(1, id="2", name="Read", arguments="")),
        CALLS,
    )

    finished = events.index(BlockFinished(0, ToolUseBlock(id="1", name="Read", input={"p": "a"})))
    assert events[finished + 1] == BlockStarted(1, "tool_use", "2", "Read")


def test_more_arguments_for_a_complete_call_are_an_error() -> None:
    with pytest.raises(StreamError, match="more arguments"):
        events_of(calls(call(0, name="Read", arguments="{}"), call(1, name="Read"), call(0, arguments=A)) + CALLS)


def test_call_without_arguments_runs_but_a_cut_one_does_not() -> None:
    without = message_of(calls(call(0, id="1", name="Read")) + CALLS)
    cut = message_of(calls(call(0, id="1", name="Read", arguments='{"p": "a')) + chunk(finish_reason="length") + DONE)
    broken = message_of(calls(call(0, id="1", name="Read", arguments='{"p": "a')) + CALLS)

    assert told(without) == [("Read", {})]
    assert "cut off by the output limit" in str(cut.tool_uses[0].input_error)
    assert "not whole, valid JSON" in str(broken.tool_uses[0].input_error)


def test_text_behind_a_call_comes_after_the_calls() -> None:
    message = message_of(
        calls(call(0, id="1", name="Read", arguments='{"p":'))
        + chunk({"content": "so"})
        + calls(call(0, arguments='"a"}'))
        + chunk({"content": " then"})
        + CALLS
    )

    assert message.content == (ToolUseBlock(id="1", name="Read", input={"p": "a"}), TextBlock(text="so then"))


@pytest.mark.parametrize(
    ("deltas", "wire", "ours"),
    [
        ({"content": "x"}, "stop", "end_turn"),
        ({"content": "x"}, "length", "max_tokens"),
        ({"content": "x"}, "content_filter", "refusal"),
        ({"content": "x"}, "sensitive", "refusal"),
        ({"content": "x"}, "tool_calls", "end_turn"),
        ({"content": "x"}, "brand_new", "unknown"),
        ({"refusal": "I cannot"}, "stop", "refusal"),
        ({"tool_calls": [call(0, name="Read", arguments=A)]}, "stop", "tool_use"),
        ({"tool_calls": [call(0, name="Read", arguments=A)]}, "tool_calls", "tool_use"),
        ({"tool_calls": [call(0, name="Read", arguments=A)]}, None, "tool_use"),
        ({"content": "x"}, None, "unknown"),
    ],
)
def test_finish_reasons_are_translated(deltas: dict[str, Any], wire: str | None, ours: str) -> None:
    assert message_of(chunk(deltas) + chunk(finish_reason=wire) + DONE).stop_reason == ours


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "network_error", "error", "abort"])
def test_reply_broken_off_by_the_server_is_retried(reason: str) -> None:
    with pytest.raises(RetryableError, match=reason):
        message_of(chunk({"content": "x"}) + chunk(finish_reason=reason) + DONE)


@pytest.mark.parametrize(
    ("usage", "ours"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(input_tokens=9, output_tokens=4)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 1}},
            Usage(input_tokens=2, cache_read_input_tokens=6, cache_creation_input_tokens=1),
        ),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4},
            Usage(input_tokens=4, cache_read_input_tokens=5),
        ),
        ({"prompt_tokens": 9, "cached_tokens": 3}, Usage(input_tokens=6, cache_read_input_tokens=3)),
        ({"prompt_tokens": 1, "cached_tokens": 3}, Usage(cache_read_input_tokens=3)),
        ({"prompt_tokens": "9", "completion_tokens": 4.0}, Usage(input_tokens=9, output_tokens=4)),
        ({"prompt_tokens": None, "completion_tokens": "4 or so", "prompt_tokens_details": []}, Usage()),
        ({"prompt_tokens": float("inf"), "completion_tokens": -4.5}, Usage()),
        ({"prompt_tokens": "9" * 5_000, "completion_tokens": True}, Usage()),
    ],
)
def test_usage_is_read_in_all_its_forms(usage: dict[str, Any], ours: Usage) -> None:
    in_the_last_chunk = message_of(chunk({"content": "x"}, "stop") + chunk(choices=[], usage=usage) + DONE)
    with_null_choices = message_of(chunk({"content": "x"}, "stop") + chunk(choices=None, usage=usage) + DONE)
    with_the_reason = message_of(chunk({"content": "x"}, "stop", usage=usage) + DONE)
    in_the_choice = message_of(
        chunk(choices=[{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop", "usage": usage}]) + DONE
    )

    assert in_the_last_chunk.usage == with_null_choices.usage == with_the_reason.usage == in_the_choice.usage == ours


def test_other_choices_and_odd_deltas_are_skipped() -> None:
    message = message_of(
        chunk(choices=[{"index": 1, "delta": {"content": "other"}}, {"index": 0, "delta": {"content": "mine"}}])
        + b": comment\n\ndata:\n\n"
        + chunk(choices=["?"])
        + chunk(choices=[{"index": 0, "delta": None}])
        + chunk({"content": [{"type": "text", "text": "!"}, {"type": "image"}, "?"], "reasoning": {"a": 1}})
        + chunk({"tool_calls": ["?"], "function_call": "?"})
        + STOP
    )

    assert message.content == (TextBlock(text="mine!"),)


async def asked(*chunks: bytes | Stall, **answer: Any) -> AssistantMessage:
    async with serving(Answer(chunks, **answer)) as server:
        provider = OpenAICompatibleProvider(api_key="k", base_url=server.url, name="vendor", idle_timeout_s=20)
        try:
            return await ask(provider)
        finally:
            await provider.aclose()


@pytest.mark.parametrize("end", [b"", DONE, b"data: [DONE]", b"data: [DONE]\n", b"data:[DONE]\r\n\r\n"])
@pytest.mark.parametrize("is_cut", [True, False])
async def test_finish_reason_or_done_completes_a_reply(end: bytes, is_cut: bool) -> None:
    assert (await asked(chunk({"content": "x"}), chunk(finish_reason="stop") + end, is_cut=is_cut)).text == "x"


async def test_done_alone_completes_a_reply() -> None:
    assert (await asked(chunk({"content": "x"}) + DONE)).stop_reason == "unknown"


@pytest.mark.parametrize("is_cut", [True, False])
async def test_stream_without_an_end_is_an_error(is_cut: bool) -> None:
    for parts in ([], [chunk({"content": "x"})], [calls(call(0, name="Read", arguments=A))]):
        with pytest.raises(StreamError, match="vendor"):
            await asked(*parts, is_cut=is_cut)


async def test_events_behind_a_finish_reason_are_read() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    message = await asked(
        chunk({"content": "a"}, "stop"), chunk({"content": "b"}, "stop"), chunk(choices=[], usage=usage), DONE
    )

    assert (message.text, message.usage) == ("ab", Usage(input_tokens=9, output_tokens=4))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}, RateLimitError),
        ({"message": "The server had an error", "type": "server_error", "code": None}, RetryableError),
        ({"message": "maximum context length is 8192 tokens", "code": 400}, ContextOverflowError),
        ({"message": "bad", "type": "invalid_request_error"}, ProviderError),
        ("the runner has stopped", RetryableError),
    ],
)
def test_mid_stream_error_is_raised_by_its_type(error: Any, expected: type[ProviderError]) -> None:
    for data in (b"data: ", b"event: error\ndata: "):
        with pytest.raises(ProviderError) as caught:
            message_of(chunk({"content": "x"}), data + json.dumps({"error": error}).encode() + b"\n\n", DONE)
        assert type(caught.value) is expected


async def test_reply_as_one_document_is_understood() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "reasoning": "hm",
        "tool_calls": [call(None, id="1", name="Read", arguments=A)],
    }
    document = {
        "id": "1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }

    got = await asked(json.dumps(document).encode(), headers={"content-type": "application/json"})

    assert got.content == (ThinkingBlock(thinking="hm"), ToolUseBlock(id="1", name="Read", input={"p": "a"}))
    assert (got.stop_reason, got.usage) == ("tool_use", Usage(input_tokens=3, output_tokens=2))


async def test_request_goes_to_chat_completions_without_counting() -> None:
    async with serving(Answer([chunk({"content": "x"}) + STOP])) as server:
        provider = OpenAICompatibleProvider(api_key="k", base_url=server.url + "/v1")
        await collect(provider, HELLO, ModelOptions("some-model", 5))
        assert await provider.count_tokens(HELLO, ModelOptions("some-model", 5)) is None
        await provider.aclose()

    (request,) = server.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", "Bearer k")
    assert request.json["messages"] == [{"role": "user", "content": "hello"}]


async def test_empty_request_is_refused_before_sending() -> None:
    provider = OpenAICompatibleProvider(api_key="k", base_url="http://127.0.0.1:1")

    with pytest.raises(ProviderError, match="no message to send"):
        await ask(provider, ModelRequest("sys", (), [UserMessage.of("  ")]))


def test_provider_runs_on_trio() -> None:
    async def main() -> None:
        assert (await asked(chunk({"content": "x"}) + STOP)).text == "x"

    anyio.run(main, backend="trio")


VALUES = st.integers(0, 9) | st.text('x"\\}{ é', max_size=5)


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2), max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_interleaved_call_pieces_become_whole_calls(
    inputs: list[dict[str, Any]], rng: random.Random, is_interleaved: bool
) -> None:
    pieces: list[list[dict[str, Any]]] = []
    for number, value in enumerate(inputs):
        text = json.dumps(value)
        cuts = sorted(rng.sample(range(len(text) + 1), min(2, len(text))))
        parts = [text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])]
        first = call(number, id=f"id{number}", name="Read", arguments="")
        pieces.append([first, *(call(number, arguments=part) for part in parts)])
    if is_interleaved:
        entries = [entry for row in itertools.zip_longest(*pieces) for entry in row if entry is not None]
    else:
        entries = [entry for row in pieces for entry in row]

    message = message_of(calls(*entries) + CALLS)

    assert told(message) == [("Read", value) for value in inputs]


async def test_tool_renamed_on_the_wire_is_called_by_its_own_name() -> None:
    # Moonshot wants three characters: https://platform.kimi.ai/docs/api/tool-use
    tools = (ToolDefinition("LS", "Lists.", {"type": "object"}), ToolDefinition("Read", "Reads.", {"type": "object"}))
    stream = calls(call(0, id="1", name="LS_", arguments="{}"), call(1, id="2", name="Read", arguments="{}"))
    pieces = calls(call(0, id="3", name="LS", arguments=""), call(0, name="_"), call(0, arguments="{}"))
    names = []
    async with serving(Answer([stream + CALLS]), Answer([pieces + CALLS])) as server:
        provider = OpenAICompatibleProvider(api_key="k", base_url=server.url, profile=KIMI)
        for _ in range(2):
            events = await collect(provider, ModelRequest("", tools, HELLO.messages))
            names += [event.tool_name for event in events if isinstance(event, BlockStarted)]
            message = events[-1]
            assert isinstance(message, AssistantMessage)
            names += [use.name for use in message.tool_uses]
        await provider.aclose()

    assert names == ["LS", "Read", "LS", "Read", "LS", "LS"]
    assert [tool["function"]["name"] for tool in server.requests[0].json["tools"]] == ["LS_", "Read"]
