"""A client for a peer, made from settings, as for any user with a server of their own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from panpan.config.models import Dialect
from panpan.models.client import LLMClient
from panpan.models.factory import GenerationOptions, create_client, resolve_model
from panpan.models.model_choice import ModelRequirement, NamedProvider
from panpan.types.events import RetryScheduled
from panpan.types.llm import ModelRequest, Sampling, ToolDefinition
from panpan.types.messages import AssistantMessage, Message

DIALECTS: Sequence[Dialect] = ("openai", "anthropic")


@dataclass(frozen=True, slots=True)
class Peer:
    """A server that runs."""

    base_url: str
    """For chat completions; the Messages API is beside it."""
    api_key: str = field(repr=False)
    context_tokens: int


@asynccontextmanager
async def client_of(
    peer: Peer, dialect: Dialect, *, max_output_tokens: int = 60, api_key: str | None = None
) -> AsyncIterator[LLMClient]:
    """Open a client of a peer for the block; it asks for the likeliest answer, which is the same each time."""
    server = NamedProvider("peer", dialect, peer.base_url, api_key=peer.api_key if api_key is None else api_key)
    resolved = resolve_model([ModelRequirement(model="peer/any")], {}, providers={"peer": server})
    client = create_client(resolved, GenerationOptions(max_output_tokens=max_output_tokens, sampling=Sampling(0.0)))
    try:
        yield client
    finally:
        await client.aclose()


async def reply_events(client: LLMClient, *messages: Message, tools: Sequence[ToolDefinition] = ()) -> list[Any]:
    """Return the events of a reply, of which the last one is the message.

    Nothing was asked twice for it, but where the server had closed a connection that it kept, as it may at any time.
    """
    async with aclosing(client.stream(request_of(*messages, tools=tools))) as stream:
        events = [event async for event in stream]
    again = [event.reason for event in events if isinstance(event, RetryScheduled)]
    assert all("the connection to" in reason for reason in again), again
    assert isinstance(events[-1], AssistantMessage)
    return events


def request_of(*messages: Message, tools: Sequence[ToolDefinition] = ()) -> ModelRequest:
    """Return a request with a short system prompt."""
    ids = frozenset(
        use.id for message in messages if isinstance(message, AssistantMessage) for use in message.tool_uses
    )
    return ModelRequest("You are a helpful assistant. Answer briefly.", tools, messages, ids)


def prompt_tokens(message: AssistantMessage) -> int:
    """Return how many tokens the request had, whether the server had to read them or knew them."""
    return message.usage.input_tokens + message.usage.cache_read_input_tokens
