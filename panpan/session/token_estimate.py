"""About how many tokens something has, by its length, and how far the provider's counts say that this is wrong.

No tokenizer is loaded: the vendors' own are not public, and others need a download. The counts of a conversation's
newest replies put the estimate right for the model that answers, and for what is being read and written at the moment.
"""

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from panpan.types.content import (
    AssistantContent,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

BYTES_PER_TOKEN = 4
"""Of UTF-8: the rule of thumb that vendors give for English text; other scripts have more bytes and more tokens."""
IMAGE_TOKENS = 1_500
"""About what the largest picture costs that vendors do not shrink first."""
DOCUMENT_TOKENS = 3_000
"""A page or two; how many pages a document has is not known here."""

_LEAST_COMPARED = 500
"""Estimated tokens that are compared with counts; less says nothing."""
_MOST_REPLIES = 12
"""Newest replies whose counts are compared."""
_LEAST_FACTOR, _MOST_FACTOR = 0.5, 3.0
"""What a tokenizer could make of a text; what is outside comes from elsewhere, such as thinking that is not sent."""


def text_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def block_tokens(block: AssistantContent | ImageBlock | DocumentBlock) -> int:
    """Return about how many tokens a part of a message has."""
    match block:
        case TextBlock(text=text):
            return text_tokens(text)
        case ToolUseBlock(name=name):
            return text_tokens(name + json.dumps(block.input, ensure_ascii=False))
        case ThinkingBlock(thinking=thinking):
            return text_tokens(thinking)
        case RedactedThinkingBlock(data=data):
            return text_tokens(data)
        case ImageBlock():
            return IMAGE_TOKENS
        case DocumentBlock():
            return DOCUMENT_TOKENS
        case _:
            assert_never(block)


def message_tokens(message: Message) -> int:
    """Return about how many tokens a message has."""
    match message:
        case UserMessage(content=content) | AssistantMessage(content=content):
            return sum(map(block_tokens, content))
        case SystemReminder():
            return text_tokens(message.tagged_text)
        case ToolResultMessage(result=result):
            return sum(map(block_tokens, result.content))
        case _:
            assert_never(message)


def tool_tokens(tools: Sequence[ToolDefinition]) -> int:
    """Return about how many tokens the definitions of tools have."""
    return sum(text_tokens(tool.name + tool.description + json.dumps(tool.input_schema, default=str)) for tool in tools)


def calibration(messages: Sequence[Message]) -> float:
    """Return by what an estimate has to be multiplied to be what the provider counts; 1.0 where that is not known.

    Compares what was added between two replies with the difference of their counts, for the newest replies.

    Args:
        messages: What was sent with requests that only grew at their end.
    """
    counted = estimated = 0
    for difference, between in _newest_steps(messages):
        counted, estimated = counted + difference, estimated + between
    if estimated < _LEAST_COMPARED:
        return 1.0
    return min(_MOST_FACTOR, max(_LEAST_FACTOR, counted / estimated))


def _newest_steps(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield what the provider counted and what is estimated between two counted replies, newest first."""
    later: AssistantMessage | None = None
    between = replies = 0
    for message in reversed(messages):
        if not isinstance(message, AssistantMessage):
            between += message_tokens(message)
        elif not message.usage.context_tokens:
            between += message_tokens(message)  # one that was interrupted, say
        else:
            if later is not None:
                yield later.usage.context_tokens - later.usage.output_tokens - message.usage.context_tokens, between
            later, between, replies = message, 0, replies + 1
            if replies > _MOST_REPLIES:
                return
