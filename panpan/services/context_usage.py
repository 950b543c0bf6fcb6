"""What fills the context window, by where it comes from.

No provider says how many tokens each part of a request has, so the parts are estimated by their length, and those up to
the newest reply are scaled to what the provider counted for it. The sum is therefore as good as the provider's count;
the shares are estimates.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias, assert_never, get_args

from panpan.core.conversation import Conversation
from panpan.types.content import (
    AssistantContent,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from panpan.types.dataclass import dataclass
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

BYTES_PER_TOKEN = 4
"""Of UTF-8: the rule of thumb that vendors give for English text; other scripts have more bytes and more tokens."""
IMAGE_TOKENS = 1_500
"""About what the largest picture costs that vendors do not shrink first."""
DOCUMENT_TOKENS = 3_000
"""A page or two; how many pages a document has is not known here."""

Source: TypeAlias = Literal[
    "system prompt", "tools", "project and reminders", "user", "tool results", "replies", "thinking"
]
"""Where tokens come from: `tools` are their definitions, `replies` are texts and calls of the model."""

SOURCES: Sequence[Source] = get_args(Source)
"""In the order in which they are shown."""

_Weighed: TypeAlias = tuple[Source, int]


@dataclass(frozen=True, slots=True)
class ContextPart:
    """What one source fills."""

    source: Source
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """What fills a context window."""

    window_tokens: int | None
    """Size of the window; None where it is not known."""
    parts: Sequence[ContextPart]
    """One for each source, in the order of `SOURCES`."""
    is_counted: bool
    """Whether the provider counted most of the sum; if not, the sum is an estimate as well."""

    @property
    def used_tokens(self) -> int:
        """All parts together."""
        return sum(part.tokens for part in self.parts)

    @property
    def free_tokens(self) -> int | None:
        """What is left; 0 where more is used than the window is said to hold, None where its size is not known."""
        return None if self.window_tokens is None else max(0, self.window_tokens - self.used_tokens)

    def share_of(self, tokens: int) -> float | None:
        """Return which part of the window some tokens are, from 0 to 1 and more; None where its size is not known."""
        return tokens / self.window_tokens if self.window_tokens else None


def context_usage(conversation: Conversation, window_tokens: int | None) -> ContextUsage:
    """Return what the next request would fill, by source.

    Args:
        conversation: What has been said.
        window_tokens: Size of the model's context window; None where it is not known.
    """
    messages = conversation.messages
    counted = _newest_counted(messages)
    weighed = list(_weighed_prefix(conversation.system, conversation.tools))
    for message in messages[: counted + 1]:
        weighed += _weighed(message)
    tokens = _by_source(weighed)
    if counted >= 0:
        reply = messages[counted]
        assert isinstance(reply, AssistantMessage)
        tokens = _scaled(tokens, reply.usage.context_tokens)
    later = _by_source(part for message in messages[counted + 1 :] for part in _weighed(message))
    parts = [ContextPart(source, one + two) for source, one, two in zip(SOURCES, tokens, later, strict=True)]
    return ContextUsage(window_tokens, parts, is_counted=counted >= 0)


def used_tokens(conversation: Conversation) -> int:
    """Return the sum that `context_usage` gives, with work that does not grow with the history once it was counted."""
    messages = conversation.messages
    counted = _newest_counted(messages)
    if counted < 0:
        return context_usage(conversation, None).used_tokens
    reply = messages[counted]
    assert isinstance(reply, AssistantMessage)
    later = _by_source(part for message in messages[counted + 1 :] for part in _weighed(message))
    return reply.usage.context_tokens + sum(later)


def _newest_counted(messages: Sequence[Message]) -> int:
    """Return the index of the newest reply for which the provider counted; -1 where there is none."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, AssistantMessage) and message.usage.context_tokens > 0:
            return index
    return -1


def _by_source(weighed: Iterable[_Weighed]) -> list[int]:
    """Return the tokens of each source, in the order of `SOURCES`."""
    total = dict.fromkeys(SOURCES, 0)
    for source, tokens in weighed:
        total[source] += tokens
    return list(total.values())


def _scaled(tokens: Sequence[int], wanted: int) -> list[int]:
    """Return whole numbers in the same proportion whose sum is exactly `wanted`."""
    whole = sum(tokens)
    if whole == 0:
        return [*tokens[:-2], wanted, *tokens[-1:]]  # something was counted where nothing is seen: a reply, say
    ends = [round(end * wanted / whole) for end in accumulate(tokens)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _weighed_prefix(system: str, tools: Sequence[ToolDefinition]) -> Iterator[_Weighed]:
    yield "system prompt", _text_tokens(system)
    for tool in tools:
        yield "tools", _text_tokens(tool.name + tool.description + json.dumps(tool.input_schema, default=str))


def _weighed(message: Message) -> Iterator[_Weighed]:
    match message:
        case UserMessage(content=content):
            yield from (("user", _block_tokens(block)) for block in content)
        case SystemReminder():
            yield "project and reminders", _text_tokens(message.tagged_text)
        case ToolResultMessage(result=result):
            yield from (("tool results", _block_tokens(block)) for block in result.content)
        case AssistantMessage(content=content):
            yield from map(_weighed_reply, content)
        case _:
            assert_never(message)


def _weighed_reply(block: AssistantContent) -> _Weighed:
    match block:
        case TextBlock(text=text):
            return "replies", _text_tokens(text)
        case ToolUseBlock(name=name):
            return "replies", _text_tokens(name + json.dumps(block.input, ensure_ascii=False))
        case ThinkingBlock(thinking=thinking):
            return "thinking", _text_tokens(thinking)
        case RedactedThinkingBlock(data=data):
            return "thinking", _text_tokens(data)
        case _:
            assert_never(block)


def _block_tokens(block: TextBlock | ImageBlock | DocumentBlock) -> int:
    match block:
        case TextBlock(text=text):
            return _text_tokens(text)
        case ImageBlock():
            return IMAGE_TOKENS
        case DocumentBlock():
            return DOCUMENT_TOKENS
        case _:
            assert_never(block)


def _text_tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
