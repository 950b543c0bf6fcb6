"""Usage of the context window: its sources, and estimates of their tokens."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias, assert_never, get_args

from anyio import move_on_after

from panpan.core.conversation import Conversation
from panpan.errors import ProviderError
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
from panpan.types.llm import ModelClient, ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 per token: the rule of thumb that vendors give for English text. Other scripts have more of both."""
IMAGE_TOKENS = 1_500
"""Estimate for the largest picture that vendors do not shrink first."""
DOCUMENT_TOKENS = 3_000
"""A page or two; how many pages a document has is not known here."""

_LEAST_COMPARED = 500
"""Estimated tokens that are compared with counts; less says nothing."""
_MOST_REPLIES = 12
"""Newest replies whose counts are compared."""
_LEAST_FACTOR, _MOST_FACTOR = 0.5, 3.0
"""Range in which a tokenizer may differ from the estimate; outside of it, something else does, such as thinking that is
not sent."""


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
    return sum(-(-tool.size // BYTES_PER_TOKEN) for tool in tools)


def calibration(messages: Sequence[Message]) -> float:
    """Return the factor from an estimate to the provider's count; 1.0 if that is not known.

    Compares what was added between two replies with the difference of their counts, for the newest replies of
    `messages`, which were sent with requests that only grew at their end.
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
            between += message_tokens(message)  # such as an interrupted reply
        else:
            if later is not None:
                yield later.usage.context_tokens - later.usage.output_tokens - message.usage.context_tokens, between
            later, between, replies = message, 0, replies + 1
            if replies > _MOST_REPLIES:
                return


Source: TypeAlias = Literal[
    "system prompt", "tools", "project and reminders", "user", "tool results", "replies", "thinking"
]
"""Source of tokens: `tools` are their definitions, `replies` are texts and calls of the model."""

SOURCES: Sequence[Source] = get_args(Source)
"""Sources in the order in which they are shown."""

COUNT_TIME_LIMIT_S = 5.0

MOST_PER_ESTIMATED = 4 / 3
"""Most real tokens per estimated one: some tokenizers need one for three bytes of English."""

_Weighed: TypeAlias = tuple[Source, int]


@dataclass(frozen=True, slots=True)
class ContextPart:
    """Tokens of one source."""

    source: Source
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """Tokens in a context window by their source."""

    window_tokens: int | None
    parts: Sequence[ContextPart]
    is_counted: bool
    """True if the provider counted most of the sum; if not, the sum is an estimate as well."""
    is_exact: bool = False
    """True if the provider counted all of the sum."""

    @property
    def used_tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def free_tokens(self) -> int | None:
        """Tokens that are left; 0 if more are used than the window is said to hold, None if its size is not known."""
        return None if self.window_tokens is None else max(0, self.window_tokens - self.used_tokens)

    def share_of(self, tokens: int) -> float | None:
        """Return the share of the window that some tokens take, from 0 to 1 and more; None if its size is not known."""
        return tokens / self.window_tokens if self.window_tokens else None


def context_usage(conversation: Conversation, window_tokens: int | None, *, exact: int | None = None) -> ContextUsage:
    """Return what the next request would fill, by source.

    Args:
        conversation: All that was said.
        window_tokens: Size of the model's context window; None if it is not known.
        exact: The provider's count of the request; None if it was not asked or cannot say.
    """
    known = _known(conversation)
    prefix: Sequence[_Weighed] = (
        ("system prompt", text_tokens(conversation.system)),
        ("tools", tool_tokens(conversation.tools)),
    )
    tokens = _by_source((*prefix, *_weighed_messages(conversation.sent[: known.messages])))
    if known.tokens is not None:
        tokens = _scaled(tokens, known.tokens)
    later = _by_source(_weighed_messages(conversation.sent[known.messages :]))
    later = [round(count * known.factor) for count in later]
    tokens = [one + two for one, two in zip(tokens, later, strict=True)]
    if exact is not None:
        tokens = _scaled(tokens, exact)
    parts = [ContextPart(source, count) for source, count in zip(SOURCES, tokens, strict=True)]
    return ContextUsage(
        window_tokens, parts, is_counted=known.is_counted or exact is not None, is_exact=exact is not None
    )


async def measured_usage(conversation: Conversation, llm: ModelClient, window_tokens: int | None) -> ContextUsage:
    """Return the same, with the provider's exact count of the sum, where it can be asked for one."""
    exact: int | None = None
    if conversation.sent:
        try:
            with move_on_after(COUNT_TIME_LIMIT_S):
                exact = await llm.count_tokens(conversation.request())
        except ProviderError:
            exact = None
    return context_usage(conversation, window_tokens, exact=exact)


def used_tokens(conversation: Conversation) -> int:
    """Return the sum that `context_usage` gives, with work that does not grow with the history once it was counted."""
    known = _known(conversation)
    if known.tokens is None:
        return context_usage(conversation, None).used_tokens
    later = _by_source(_weighed_messages(conversation.sent[known.messages :]))
    return known.tokens + sum(round(count * known.factor) for count in later)


def uncounted_tokens(conversation: Conversation) -> int:
    """Return how much of `used_tokens` no provider has counted for this request."""
    known = _known(conversation)
    later = sum(map(message_tokens, conversation.sent[known.messages :]))
    return round(later * known.factor) if known.is_counted else used_tokens(conversation)


def max_tokens_of(request: ModelRequest) -> int:
    """Return how many tokens a request has at most, as far as can be told: estimates may be too low."""
    known = _known_of(request.messages, request.measured_messages, request.measured_tokens)
    later = sum(map(message_tokens, request.messages[known.messages :]))
    estimated = round(later * known.factor)
    if known.tokens is None:
        estimated += text_tokens(request.system) + tool_tokens(request.tools)
    counted = known.tokens or 0
    if not known.is_counted:
        estimated, counted = estimated + counted, 0
    return counted + round(MOST_PER_ESTIMATED * estimated)


def min_tokens_of(request: ModelRequest) -> int:
    """Return about how many tokens the text of a request has, whatever was counted before.

    Pictures, documents and thinking are left out: providers may send less of them than there is.
    """
    return text_tokens(request.system) + tool_tokens(request.tools) + sum(map(_tokens_of_text, request.messages))


def _tokens_of_text(message: Message) -> int:
    match message:
        case SystemReminder():
            return message_tokens(message)
        case ToolResultMessage(result=result):
            content: Sequence[object] = result.content
        case UserMessage() | AssistantMessage():
            content = message.content
        case _:
            assert_never(message)
    return sum(block_tokens(block) for block in content if isinstance(block, TextBlock | ToolUseBlock))


@dataclass(frozen=True, slots=True)
class _Known:
    messages: int
    """Number of its messages that are in `tokens`."""
    tokens: int | None
    """Tokens of the request up to there; None if nothing is known."""
    is_counted: bool
    """True if a provider has counted them, not only a compaction measured them."""
    factor: float
    """Factor by which estimates of the rest are multiplied."""


def _known(conversation: Conversation) -> _Known:
    return _known_of(conversation.sent, conversation.measured_messages, conversation.measured_tokens)


def _known_of(messages: Sequence[Message], measured: int, measured_tokens: int) -> _Known:
    for index in range(len(messages) - 1, measured - 1, -1):
        message = messages[index]
        if isinstance(message, AssistantMessage) and message.usage.context_tokens > 0:
            factor = calibration(messages[measured:])
            return _Known(index + 1, message.usage.context_tokens, is_counted=True, factor=factor)
    return _Known(measured, measured_tokens or None, is_counted=False, factor=1.0)


def _by_source(weighed: Iterable[_Weighed]) -> list[int]:
    total = dict.fromkeys(SOURCES, 0)
    for source, tokens in weighed:
        total[source] += tokens
    return list(total.values())


def _scaled(tokens: Sequence[int], wanted: int) -> list[int]:
    """Return whole numbers in the same proportion whose sum is exactly `wanted`."""
    whole = sum(tokens)
    if whole == 0:
        return [*tokens[:-2], wanted, *tokens[-1:]]  # something invisible was counted, such as a reply
    ends = [round(end * wanted / whole) for end in accumulate(tokens)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _weighed_messages(messages: Iterable[Message]) -> Iterator[_Weighed]:
    for message in messages:
        match message:
            case UserMessage():
                yield "user", message_tokens(message)
            case SystemReminder():
                yield "project and reminders", message_tokens(message)
            case ToolResultMessage():
                yield "tool results", message_tokens(message)
            case AssistantMessage(content=content):
                yield from map(_weighed_reply, content)
            case _:
                assert_never(message)


def _weighed_reply(block: AssistantContent) -> _Weighed:
    is_thought = isinstance(block, ThinkingBlock | RedactedThinkingBlock)
    return "thinking" if is_thought else "replies", block_tokens(block)
