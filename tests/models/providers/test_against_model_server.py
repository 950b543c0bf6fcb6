"""Both providers against a server that checks requests as the real APIs do."""

from collections.abc import Callable
from typing import Any

import pytest

from panpan.errors import ProviderError, RetryableError, StreamError
from panpan.models.providers.anthropic import AnthropicProvider
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.types.content import Base64Source, ImageBlock, RedactedThinkingBlock, ThinkingBlock
from panpan.types.llm import ModelOptions, ModelRequest, Provider, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, Usage, UserMessage
from tests.model_server import script as play
from tests.model_server.server import ModelServer, serving
from tests.models.wire import ask, result

READ = ToolDefinition("Read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
OPTIONS = ModelOptions("claude-sonnet-4-5", 8000, thinking_budget_tokens=2000)
PNG = ImageBlock(source=Base64Source(media_type="image/png", data="iVBORw0KGgo="))


def anthropic(server: ModelServer, **options: Any) -> Provider:
    return AnthropicProvider(api_key="k", base_url=server.url, name="vendor", **options)


def openai(server: ModelServer, **options: Any) -> Provider:
    return OpenAICompatibleProvider(api_key="k", base_url=server.openai_url, name="vendor", **options)


Make = Callable[..., Provider]
BOTH = pytest.mark.parametrize("make", [anthropic, openai])


async def answer(make: Make, step: play.Step, **options: Any) -> AssistantMessage:
    with serving([step]) as server:
        provider = make(server, **options)
        try:
            return await ask(provider, ModelRequest("sys", (READ,), [UserMessage.of("go")]), OPTIONS)
        finally:
            await provider.aclose()


@BOTH
async def test_long_conversation_is_valid_in_every_request(make: Make) -> None:
    # given rounds with thinking, parallel calls, a failing one, a picture, and an empty reply among them
    steps: list[play.Step] = []
    for number in range(6):
        look = play.ToolCall("Read", {"path": f"{number}.py"})
        steps.append(play.Reply((play.Thinking("hm"), play.Text("I look."), look, play.ToolCall("Read"))))
    steps += [play.Reply(()), play.say("Done.")]
    messages: list[Message] = [UserMessage.of("go"), SystemReminder(text="today")]

    # when
    ids: set[str] = set()
    with serving(steps, api_key="k") as server:
        provider = make(server)
        for _ in steps:
            reply = await ask(provider, ModelRequest("sys", (READ,), messages, ids), OPTIONS)
            messages.append(reply)
            ids |= {use.id for use in reply.tool_uses}
            for position, use in enumerate(reply.tool_uses):
                messages.append(result(use.id, "text", PNG) if position else result(use.id, "no", is_error=True))
            if not reply.tool_uses:
                messages.append(UserMessage.of("and?"))
        await provider.aclose()

        # then
        assert server.refusals == []
        assert len(server.requests) == len(steps)
    assert reply.text == "Done."
    assert len(ids) == 12


@BOTH
@pytest.mark.parametrize("writes", ["events", "bulk", 1, 5])
async def test_reply_is_the_same_in_any_chunks(make: Make, writes: Any) -> None:
    step = play.Reply(
        (play.Thinking("Grübel 🎈"), play.Text("Grüße 🎈"), play.ToolCall("Read", {"path": "é🎈.py"}, id="t1")),
        tokens=play.Tokens(input=7, output=3, cache_read=2),
        writes=writes,
    )

    message = await answer(make, step)

    assert message.text == "Grüße 🎈"
    assert [block.thinking for block in message.content if isinstance(block, ThinkingBlock)] == ["Grübel 🎈"]
    assert [(use.id, use.input) for use in message.tool_uses] == [("t1", {"path": "é🎈.py"})]
    assert message.stop_reason == "tool_use"
    assert message.usage == Usage(input_tokens=7, output_tokens=3, cache_read_input_tokens=2)


async def test_redacted_thinking_is_sent_back_unchanged() -> None:
    steps = [play.Reply((play.RedactedThinking("ZW5j"), play.Text("Hi"))), play.say("Done.")]
    with serving(steps) as server:
        provider = anthropic(server)
        first = await ask(provider, ModelRequest("", (), [UserMessage.of("go")]), OPTIONS)
        await ask(provider, ModelRequest("", (), [UserMessage.of("go"), first, UserMessage.of("on")]), OPTIONS)
        await provider.aclose()

        assert first.content[0] == RedactedThinkingBlock(data="ZW5j")
        assert server.requests[1].body["messages"][1]["content"][0] == {"type": "redacted_thinking", "data": "ZW5j"}


@pytest.mark.parametrize(
    "quirks",
    [
        {"no_tool_ids"},
        {"no_tool_indexes"},
        {"no_usage"},
        {"no_finish_reason"},
        {"no_done"},
        {"whole_tool_calls"},
        {"interleaved"},
        {"no_tool_ids", "no_tool_indexes", "no_usage", "no_finish_reason"},
        {"no_tool_ids", "no_usage", "no_done", "whole_tool_calls"},
    ],
    ids=lambda quirks: "+".join(sorted(quirks)),
)
async def test_replies_of_sparse_servers_are_understood(quirks: set[play.Quirk]) -> None:
    step = play.calls(
        play.ToolCall("Read", {"path": "a"}),
        play.ToolCall("Read", {"path": "b"}),
        text="I look.",
        quirks=frozenset(quirks),
        chunk_chars=3,
    )

    message = await answer(openai, step)

    assert message.text == "I look."
    assert [(use.name, use.input, use.input_error) for use in message.tool_uses] == [
        ("Read", {"path": "a"}, None),
        ("Read", {"path": "b"}, None),
    ]
    assert len({use.id for use in message.tool_uses}) == 2
    assert message.stop_reason == "tool_use"


@BOTH
@pytest.mark.parametrize("how", ["close", "reset", "clean"])
@pytest.mark.parametrize("at", [0, 1, "text", "tool_arguments"])
async def test_cut_reply_is_an_error(make: Make, how: Any, at: Any) -> None:
    step = play.calls(play.ToolCall("Read", {"path": "a"}), text="I look.", faults=(play.Cut(at, how),))

    with pytest.raises(RetryableError):
        await answer(make, step)


@BOTH
async def test_stalled_reply_is_an_error(make: Make) -> None:
    with pytest.raises(StreamError, match="sent nothing for"):
        await answer(make, play.say("I look.", faults=(play.Stall("text"),)), idle_timeout_s=1)


@BOTH
async def test_failing_stream_says_why(make: Make) -> None:
    with pytest.raises(RetryableError, match="much to do"):
        await answer(make, play.say("I look.", faults=(play.StreamFailure("text", message="much to do"),)))


@BOTH
@pytest.mark.parametrize("what", ["unknown", "ping", "comment"])
async def test_unknown_event_is_skipped(make: Make, what: Any) -> None:
    assert (await answer(make, play.say("I look.", faults=(play.Inject("text", what),)))).text == "I look."


@BOTH
async def test_malformed_data_is_a_stream_error(make: Make) -> None:
    with pytest.raises(StreamError):
        await answer(make, play.say("I look.", faults=(play.Inject("text", "malformed"),)))


@BOTH
async def test_half_arguments_under_the_output_limit_never_run(make: Make) -> None:
    half = play.calls(play.ToolCall("Read", arguments='{"path": "a'), stop_reason="max_tokens")

    message = await answer(make, half)

    assert message.stop_reason == "max_tokens"
    assert "cut off by the output limit" in str(message.tool_uses[0].input_error)


@BOTH
async def test_calls_with_one_id_are_kept_apart(make: Make) -> None:
    twice = play.calls(play.ToolCall("Read", {"path": "a"}, id="same"), play.ToolCall("Read", {"path": "b"}, id="same"))

    first, second = (await answer(make, twice)).tool_uses

    assert first.id != second.id
    assert (first.input_error, second.input_error is None) == (None, False)


@BOTH
async def test_event_that_is_too_long_is_refused(make: Make) -> None:
    endless = play.say("I look.", faults=(play.Inject("text", b"data: " + b"x" * 20_000_000),))

    with pytest.raises(StreamError, match="more than"):
        await answer(make, endless)


@BOTH
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_connection_closed_before_the_answer_is_retried(make: Make, how: Any) -> None:
    with pytest.raises(RetryableError):
        await answer(make, play.Hangup(how))


@BOTH
async def test_invalid_request_is_not_retried(make: Make) -> None:
    with pytest.raises(ProviderError) as caught:
        await answer(make, play.HttpError(400, "tools.0: no"))

    assert type(caught.value) is ProviderError
    assert "tools.0: no" in str(caught.value)


async def test_tokens_are_counted() -> None:
    with serving([], input_tokens=77) as server:
        provider = anthropic(server)
        count = await provider.count_tokens(ModelRequest("s", (READ,), [UserMessage.of("go")]), OPTIONS)
        await provider.aclose()

    assert count == 77
