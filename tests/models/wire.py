"""Helpers that tests of the providers share: events as bytes, and the collecting of a reply."""

import json
from contextlib import aclosing
from typing import Any

from hypothesis import strategies as st

from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage

ODD_TEXT = st.text("a \"'\\{}[]:,\n\r\t\x00\x1b\x7f\u2028é€🎈\ud83c\udf88.-_/", max_size=20)
"""Text with everything that may trouble an encoder, halves of surrogate pairs among it; quicker made than any text."""

OPTIONS = ModelOptions("claude-sonnet-4-5", 1000)
HELLO = ModelRequest("", (), [UserMessage.of("hello")])


def anthropic_event(kind: str, **fields: Any) -> bytes:
    """Return an event as the Messages API writes it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def chunk(delta: dict[str, Any] | None = None, finish_reason: str | None = None, **fields: Any) -> bytes:
    """Return an event as the chat completions API writes it."""
    document: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "answered"}
    document["choices"] = [{"index": 0, "delta": delta or {}, "finish_reason": finish_reason}]
    return f"data: {json.dumps(document | fields)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


async def collect(
    provider: Provider, request: ModelRequest = HELLO, options: ModelOptions = OPTIONS
) -> list[StreamEvent]:
    """Return all the events of one reply."""
    async with aclosing(provider.stream(request, options)) as events:
        return [event async for event in events]


async def ask(provider: Provider, request: ModelRequest = HELLO, options: ModelOptions = OPTIONS) -> AssistantMessage:
    """Return the message that a reply ends with."""
    message = (await collect(provider, request, options))[-1]
    assert isinstance(message, AssistantMessage)
    return message


def reply(*content: Any, model: str = OPTIONS.model) -> AssistantMessage:
    """Return a reply of texts and blocks."""
    blocks = tuple(TextBlock(text=item) if isinstance(item, str) else item for item in content)
    return AssistantMessage(content=blocks, model=model)


def use(tool_use_id: str, name: str = "Read", **arguments: Any) -> ToolUseBlock:
    """Return a call."""
    return ToolUseBlock(id=tool_use_id, name=name, input=arguments)


def result(tool_use_id: str, *content: Any, is_error: bool = False) -> ToolResultMessage:
    """Return a result of texts and blocks."""
    blocks = tuple(TextBlock(text=item) if isinstance(item, str) else item for item in content)
    return ToolResultMessage(result=ToolResultBlock(tool_use_id=tool_use_id, content=blocks, is_error=is_error))
