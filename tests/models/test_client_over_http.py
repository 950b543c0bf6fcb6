"""Client, provider, SDK and server together: what heals, what does not, and what a damaged reply becomes."""

import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from panpan.errors import (
    AuthenticationError,
    ContextOverflowError,
    ProviderError,
    RateLimitError,
    StreamError,
)
from panpan.models.client import LLMClient, RetryPolicy
from panpan.models.factory import GenerationOptions, create_provider, model_options, resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.types.events import RetryScheduled
from panpan.types.llm import ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, UserMessage
from tests.model_server import (
    Cut,
    Hangup,
    HttpError,
    Inject,
    ModelServer,
    Reply,
    Stall,
    StreamFailure,
    Text,
    Thinking,
    ToolCall,
    call,
    calls,
    say,
    serving,
)

MODELS = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-6.1-sol"}
REQUEST = ModelRequest("be brief", [ToolDefinition("LS", "lists", {"type": "object"})], [UserMessage.of("hi")])

both_dialects = pytest.mark.parametrize("dialect", list(MODELS))


@contextmanager
def served(*steps: Any, dialect: str, **retry: Any) -> Iterator[tuple[ModelServer, LLMClient]]:
    with serving(steps) as server:
        env = {"ANTHROPIC_API_KEY": "sk-secret", "ANTHROPIC_BASE_URL": server.url}
        env |= {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": server.openai_url}
        resolved = resolve_model([ModelRequirement(model=MODELS[dialect])], env)

        async def no_pause(seconds: float) -> None:
            await anyio.lowlevel.checkpoint()

        # short only where silence is what the server is to be left for: a machine that stands still is silent, too
        stalls = any(isinstance(fault, Stall) for step in steps for fault in getattr(step, "faults", ()))
        provider = create_provider(resolved, idle_timeout_s=1 if stalls else 30)
        options = model_options(resolved, GenerationOptions())
        yield (
            server,
            LLMClient(provider, options, price=resolved.facts.price, retry=RetryPolicy(**retry), sleep=no_pause),
        )


async def events_of(client: LLMClient) -> list[Any]:
    try:
        async with aclosing(client.stream(REQUEST)) as events:
            return [event async for event in events]
    finally:
        await client.aclose()


HEALING = [
    HttpError(429),
    HttpError(429, headers={"retry-after": "2"}),
    HttpError(429, headers={"retry-after-ms": "20"}),
    HttpError(500),
    HttpError(502, body=b"<html>bad gateway</html>"),
    HttpError(503),
    HttpError(529),
    Hangup(),
    Hangup("reset"),
    say("half of it", faults=(StreamFailure("text"),)),
    say("half of it", faults=(Cut("text"),)),
    say("half of it", faults=(Cut("text", "reset"),)),
    say("half of it", faults=(Cut("text", "clean"),)),
    say("half of it", faults=(Stall("text"),)),
    say("half of it", faults=(Stall(0),)),
    call("LS", {"path": "a/long/path"}, faults=(Cut("tool_arguments"),)),
    call("LS", {"path": "a/long/path"}, faults=(Cut("tool_arguments", "clean"),)),
    call("LS", {"path": "a/long/path"}, faults=(Stall("tool_arguments"),)),
]


@both_dialects
@pytest.mark.parametrize("fault", HEALING, ids=str)
async def test_retry_sends_the_same_request_and_doubles_no_reply(dialect: str, fault: Any) -> None:
    with served(fault, say("whole"), dialect=dialect) as (server, client):
        events = await events_of(client)

    (retry,) = [event for event in events if isinstance(event, RetryScheduled)]
    messages = [event for event in events if isinstance(event, AssistantMessage)]
    assert [message.text for message in messages] == ["whole"]
    assert messages[0].tool_uses == ()
    assert retry.attempt == 2
    assert server.requests[0].raw == server.requests[1].raw
    assert server.refusals == []


@both_dialects
async def test_pause_of_the_server_is_announced(dialect: str) -> None:
    with served(HttpError(429, headers={"retry-after": "7"}), say("x"), dialect=dialect) as (_, client):
        first, *_ = await events_of(client)

    assert 7 <= first.delay_s < 8


TERMINAL = [
    (HttpError(400), ProviderError),
    (HttpError(401), AuthenticationError),
    (HttpError(403), AuthenticationError),
    (HttpError(404), ProviderError),
    (HttpError(413), ProviderError),
    (HttpError(400, "prompt is too long: 1048600 tokens > 1000000 maximum"), ContextOverflowError),
    (HttpError(400, "maximum context length is 8192 tokens", code="context_length_exceeded"), ContextOverflowError),
    (HttpError(429, headers={"retry-after": "3600"}), RateLimitError),
]


@both_dialects
@pytest.mark.parametrize(("fault", "error"), TERMINAL, ids=str)
async def test_permanent_failure_is_one_line_after_one_request(dialect: str, fault: Any, error: Any) -> None:
    with served(fault, dialect=dialect) as (server, client):
        with pytest.raises(error) as caught:
            await events_of(client)

    assert len(server.requests) == 1
    assert "\n" not in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@both_dialects
async def test_attempts_end(dialect: str) -> None:
    cut = say("half of it", faults=(Cut("text", "clean"),))
    with served(cut, cut, cut, dialect=dialect, max_tries=3) as (server, client):
        with pytest.raises(StreamError, match="tried 3 times"):
            await events_of(client)

    assert len(server.requests) == 3


@both_dialects
async def test_call_cut_by_the_token_limit_never_runs(dialect: str) -> None:
    reply = calls(ToolCall("LS", arguments='{"path": "a/lo'), stop_reason="max_tokens")
    with served(reply, dialect=dialect) as (_, client):
        *_, message = await events_of(client)

    assert message.stop_reason == "max_tokens"
    assert message.tool_uses[0].input_error is not None


@both_dialects
async def test_repeated_ids_become_unique(dialect: str) -> None:
    reply = calls(ToolCall("LS", {"path": "a"}, id="one"), ToolCall("LS", {"path": "b"}, id="one"))
    with served(reply, dialect=dialect) as (_, client):
        *_, message = await events_of(client)

    first, second = message.tool_uses
    assert first.id != second.id


@both_dialects
@pytest.mark.parametrize("writes", ["events", "bulk", 1, 7])
async def test_reply_is_the_same_in_any_writes(dialect: str, writes: Any) -> None:
    blocks = (Thinking("Grüße 🐼"), Text("世界 und mehr"), ToolCall("LS", {"path": "ü 🐼"}))
    reply = Reply(blocks, writes=writes, chunk_chars=1, faults=(Inject(2, "ping"), Inject(3, "comment")))
    with served(reply, dialect=dialect) as (_, client):
        *_, message = await events_of(client)

    assert message.text == "世界 und mehr"
    assert message.tool_uses[0].input == {"path": "ü 🐼"}
    assert message.stop_reason == "tool_use"
    assert message.cost_usd is not None


@both_dialects
async def test_unknown_events_are_skipped(dialect: str) -> None:
    with served(say("hello you", faults=(Inject(3, "unknown"),)), dialect=dialect) as (_, client):
        *_, message = await events_of(client)

    assert message.text == "hello you"


@both_dialects
async def test_leaving_a_stalled_reply_closes_the_connection(dialect: str) -> None:
    with served(say("abc " * 9, faults=(Stall("text"),)), dialect=dialect) as (server, client):
        async with aclosing(client.stream(REQUEST)) as events:
            async for _ in events:
                break
        await client.aclose()
        deadline = time.monotonic() + 20
        while not server.requests[0].client_left and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251  (the server has threads of its own)
        assert server.requests[0].client_left


@both_dialects
def test_retry_works_on_trio(dialect: str) -> None:
    async def main() -> None:
        with served(HttpError(529), say("whole"), dialect=dialect) as (_, client):
            retry, *_, message = await events_of(client)
        assert isinstance(retry, RetryScheduled)
        assert message.text == "whole"

    anyio.run(main, backend="trio")
