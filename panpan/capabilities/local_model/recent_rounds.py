"""Leaves whole oldest rounds out of a request that would not fit the context window.

What the user said last always stays, and so does the newest round. The rule: what was left out once stays out, and more
is left out than would be needed, so that the beginning of the requests moves seldom and the server's cache mostly hits.
"""

import re
from collections.abc import Iterator, Sequence

from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, UserMessage

KEPT_SHARE = 0.6
"""How much of the room the history may fill after something had to be left out."""

_MESSAGE_TOKENS = 13  # what the template writes around each message
_PIECE = re.compile(r" ?[A-Za-z]{1,4}|[0-9]|[^\x00-\x7f]| ?[!-/:-@\[-`{-~]{1,2}|\s+")
"""About a token of Qwen2.5. Against the model's own counts this gave 1.0 to 1.6 times as many for prose in several
languages, Python, HTML, JSON, and tables of numbers, where each digit is one; only random letters gave fewer."""


class RecentRounds:
    """Chooses the messages of one conversation that are sent.

    Args:
        room_tokens: Tokens that the messages may have.
    """

    def __init__(self, room_tokens: float) -> None:
        self._room_tokens = room_tokens
        self._oldest = ""  # uuid of the oldest message that is not left out

    def of(self, messages: Sequence[Message]) -> list[Message]:
        """Return the newest messages that fit, beginning with something the user said."""
        start = next((number for number, message in enumerate(messages) if message.uuid == self._oldest), 0)
        if tokens_of(_kept(messages, start)) > self._room_tokens:
            start = self._cut(messages, start)
            self._oldest = messages[start].uuid
        return _kept(messages, start)

    def _cut(self, messages: Sequence[Message], least: int) -> int:
        """Return how many messages to leave out, so that what stays is small enough or the newest round alone."""
        limit = KEPT_SHARE * self._room_tokens
        starts = [start for start in range(least, len(messages)) if start == least or _begins(messages[start])]
        chosen, size, end = starts[-1], 0, len(messages)
        for start in reversed(starts):
            size += tokens_of(messages[start:end])
            if size > limit:
                break
            if size + tokens_of(_words_before(messages, start)) <= limit:
                chosen = start
            end = start
        return chosen


def tokens_of(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages have on the wire, rather more than fewer."""
    return sum(_MESSAGE_TOKENS + sum(map(_tokens_in, _texts(message))) for message in messages)


def room_tokens(context_tokens: int, output_tokens: int, system: str, tools: Sequence[ToolDefinition]) -> int:
    """Return how many tokens of messages fit beside the reply, the system prompt and the tools."""
    fixed = [system, *(f"{tool.name} {tool.description} {tool.input_schema}" for tool in tools)]
    return context_tokens - output_tokens - sum(map(_tokens_in, fixed))


def _kept(messages: Sequence[Message], start: int) -> list[Message]:
    return [*_words_before(messages, start), *messages[start:]]


def _words_before(messages: Sequence[Message], start: int) -> list[Message]:
    """Return what the user said before a round, without which it means nothing; nothing where he begins it."""
    if start < len(messages) and isinstance(messages[start], UserMessage):
        return []
    return next(([message] for message in reversed(messages[:start]) if isinstance(message, UserMessage)), [])


def _begins(message: Message) -> bool:
    """Whether a round or a turn begins with it."""
    return isinstance(message, AssistantMessage | UserMessage)


def _tokens_in(text: str) -> int:
    return len(_PIECE.findall(text))


def _texts(message: Message) -> Iterator[str]:
    if not isinstance(message, AssistantMessage):
        yield message.text
        return
    for block in message.content:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolUseBlock):
            yield f"{block.name} {block.input}"
