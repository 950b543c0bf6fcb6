"""Measured quirks of servers that others wrote; `tests/peers` asks one of them itself."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.local_model.embedded import EmbeddedProvider
from panpan.capabilities.local_model.server import ServedModel, embedded_profile
from panpan.errors import AuthenticationError, ContextOverflowError, ProviderError
from panpan.models.client import LLMClient
from panpan.models.providers.anthropic import AnthropicProvider
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.types.content import Base64Source, ImageBlock, TextBlock, ToolUseBlock
from panpan.types.events import BlockStarted, ReplyStarted, TextDelta, ToolInputDelta
from panpan.types.llm import ModelOptions, ModelRequest, Provider, ToolDefinition
from panpan.types.messages import AssistantMessage, Usage, UserMessage
from tests.models.loopback import Answer, Loopback, serving
from tests.models.wire import HELLO, OPTIONS, anthropic_event, ask, collect, reply, result, use

MEASURED = Path(__file__).parent / "fixtures" / "measured"
DIALECTS = ["chat", "messages"]
READ = ToolDefinition("Read", "Read a file", {"type": "object", "properties": {"file_path": {"type": "string"}}})

both_dialects = pytest.mark.parametrize("dialect", DIALECTS)


def provider_at(server: Loopback, dialect: str) -> Provider:
    if dialect == "chat":
        return OpenAICompatibleProvider(api_key="sk-wrong", base_url=f"{server.url}/v1", name="peer")
    return AnthropicProvider(api_key="sk-wrong", base_url=server.url, name="peer")


async def events_of(fixture: str, *, bytes_a_read: int) -> list[Any]:
    """Return the events of a recorded stream, as the provider of its dialect tells them."""
    data = (MEASURED / fixture).read_bytes()
    chunks = [data[start : start + bytes_a_read] for start in range(0, len(data), bytes_a_read)]
    async with serving(Answer(chunks)) as server:
        provider = provider_at(server, "messages" if "messages" in fixture else "chat")
        try:
            return await collect(provider)
        finally:
            await provider.aclose()


async def refusal(dialect: str, status: int, error: dict[str, Any]) -> tuple[ProviderError, int]:
    """Return what the client raises for an error of the server, and how often it asked."""
    answer = Answer(
        [json.dumps({"error": error}).encode()], status=status, headers={"content-type": "application/json"}
    )
    async with serving(answer) as server:
        client = LLMClient(provider_at(server, dialect), OPTIONS)
        try:
            with pytest.raises(ProviderError) as caught:
                async for _ in client.stream(HELLO):
                    pass
        finally:
            await client.aclose()
    return caught.value, len(server.requests)


@pytest.mark.parametrize("bytes_a_read", [7, 100_000])
@both_dialects
async def test_llama_cpp_streams_text_with_its_usage_in_two_places(dialect: str, bytes_a_read: int) -> None:
    first, *events = await events_of(f"llama.cpp-{dialect}-text.sse", bytes_a_read=bytes_a_read)

    message = events[-1]
    assert isinstance(first, ReplyStarted)
    assert events[0] == BlockStarted(0, "text")
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello! I'm"
    assert (message.content, message.stop_reason) == ((TextBlock(text="Hello! I'm"),), "max_tokens")
    total = message.usage.input_tokens + message.usage.cache_read_input_tokens
    assert (total, message.usage.output_tokens) == (23, 4)


@pytest.mark.parametrize("bytes_a_read", [7, 100_000])
@both_dialects
async def test_llama_cpp_starts_a_call_without_its_arguments(dialect: str, bytes_a_read: int) -> None:
    first, *events = await events_of(f"llama.cpp-{dialect}-call.sse", bytes_a_read=bytes_a_read)

    message = events[-1]
    (use,) = message.content  # and no empty text for the `content: null` of the first delta
    assert isinstance(first, ReplyStarted)
    assert isinstance(use, ToolUseBlock)
    assert events[0] == BlockStarted(0, "tool_use", use.id, "Read")
    assert json.loads("".join(event.json for event in events if isinstance(event, ToolInputDelta))) == use.input
    assert (use.name, use.input, use.input_error) == ("Read", {"file_path": "notes.txt"}, None)
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens == 128


async def test_litellm_reports_its_tokens_only_at_the_end() -> None:
    started, *_, message = await events_of("litellm-messages.sse", bytes_a_read=100_000)

    assert isinstance(started, ReplyStarted)
    assert len(started.message_id) > 200
    assert started.usage == Usage()
    assert (message.text, message.stop_reason) == ("Hello! How can I help you today?", "end_turn")
    assert message.usage == Usage(input_tokens=31, output_tokens=10)


async def test_overlong_call_ids_are_shortened_consistently() -> None:
    # given two calls whose ids of 230 characters differ at their end only
    ids = [f"call_{'bGl0ZWxsbTp' * 20}_{number}" for number in range(2)]
    stream = b"".join(
        anthropic_event(
            "content_block_start", index=index, content_block={"type": "tool_use", "id": id_, "name": "Read"}
        )
        + anthropic_event("content_block_stop", index=index)
        for index, id_ in enumerate(ids)
    )
    stream += anthropic_event("message_delta", delta={"stop_reason": "tool_use"}) + anthropic_event("message_stop")

    # when they are answered
    async with serving(Answer([stream])) as server:
        provider = provider_at(server, "messages")
        reply = await ask(provider)
        results = [result(use.id, "ok") for use in reply.tool_uses]
        await ask(provider, ModelRequest("", (READ,), [*HELLO.messages, reply, *results]))
        await provider.aclose()

    # then the server gets ids that any server takes
    _, calls, answers = server.requests[1].json["messages"]
    sent = [block["id"] for block in calls["content"]]
    assert [use.id for use in reply.tool_uses] == ids
    assert [block["tool_use_id"] for block in answers["content"]] == sent
    assert len(set(sent)) == 2
    assert all(len(id_) <= 64 for id_ in sent)


@both_dialects
async def test_litellm_without_a_database_answers_400_to_a_wrong_key(dialect: str) -> None:
    # the answer of https://github.com/BerriAI/litellm/issues/12273, which 1.106.2 still gave
    said = {"message": "No connected db.", "type": "no_db_connection", "param": None, "code": "400"}

    error, requests = await refusal(dialect, 400, said)

    assert isinstance(error, AuthenticationError)
    assert requests == 1
    assert "No connected db." in str(error)
    assert "sk-wrong" not in str(error)


@both_dialects
async def test_llama_cpp_refuses_in_the_same_words_in_both_dialects(dialect: str) -> None:
    key = {"message": "Invalid API Key", "type": "authentication_error", "code": 401}
    long = {
        "code": 400,
        "message": "request (4021 tokens) exceeds the available context size (2048 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 4021,
        "n_ctx": 2048,
    }

    assert isinstance((await refusal(dialect, 401, key))[0], AuthenticationError)
    assert isinstance((await refusal(dialect, 400, long))[0], ContextOverflowError)


@both_dialects
async def test_request_never_demands_a_call(dialect: str) -> None:
    async with serving(Answer([(MEASURED / f"llama.cpp-{dialect}-text.sse").read_bytes()])) as server:
        provider = provider_at(server, dialect)
        message = await ask(provider, ModelRequest("", (READ,), [UserMessage.of("hi")]), ModelOptions("m", 9))
        await provider.aclose()

    assert isinstance(message, AssistantMessage)
    assert server.requests[0].json["tools"]
    assert "tool_choice" not in server.requests[0].json


async def test_pictures_never_reach_the_embedded_model() -> None:
    # 500, server_error: "image input is not supported", which would be tried again and again
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="aGk="))
    shown = [UserMessage.of("Read a.png"), reply(use("1", file_path="a.png")), result("1", picture)]

    async with serving(Answer([(MEASURED / "llama.cpp-chat-text.sse").read_bytes()])) as server:

        @asynccontextmanager
        async def served() -> AsyncIterator[ServedModel]:
            yield ServedModel(f"{server.url}/v1", "k")

        provider = EmbeddedProvider(served, embedded_profile())
        await ask(provider, ModelRequest("", (READ,), shown), ModelOptions("local", 9))
        await provider.aclose()

    sent = server.requests[0].body.decode()
    assert "image_url" not in sent
    assert "[image left out: this provider takes none]" in sent
