"""Leaves whole oldest rounds out of a request that would not fit the context window.

What the user said last always stays, and so does the newest round. The rule: what was left out once stays out, and more
is left out than would be needed, so that the beginning of the requests moves seldom and the server's cache mostly hits.
"""

from collections.abc import Iterator, Sequence

from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

CHARS_PER_TOKEN = 3.0
"""Fewer than the 3.2 to 3.6 that the model's own counts gave for prose and Python, to be on the safe side."""
KEPT_SHARE = 0.6
"""How much of the room the history may fill after something had to be left out."""

_MESSAGE_CHARS = 40  # what the template writes around each message


class RecentRounds:
    """Chooses the messages of one conversation that are sent.

    Args:
        room_chars: Characters that the messages may have.
    """

    def __init__(self, room_chars: float) -> None:
        self._room_chars = room_chars
        self._left_out = 0  # messages, counted from the oldest

    def of(self, messages: Sequence[Message]) -> list[Message]:
        """Return the newest messages that fit, beginning with something the user said."""
        self._left_out = min(self._left_out, len(messages))
        if size_of(messages[self._left_out :]) > self._room_chars:
            self._left_out = self._cut(messages)
        kept = list(messages[self._left_out :])
        if kept and not isinstance(kept[0], UserMessage):
            kept[:0] = _last_words(messages[: self._left_out])
        return kept

    def _cut(self, messages: Sequence[Message]) -> int:
        """Return how many messages to leave out, so that what stays is small enough or the newest round alone."""
        starts = list(_round_starts(messages))
        for start in starts:
            words = [] if isinstance(messages[start], UserMessage) else _last_words(messages[:start])
            if size_of([*words, *messages[start:]]) <= KEPT_SHARE * self._room_chars:
                return start
        return starts[-1]


def size_of(messages: Sequence[Message]) -> int:
    """Return about how many characters messages have on the wire."""
    return sum(_MESSAGE_CHARS + sum(map(len, _texts(message))) for message in messages)


def room_chars(context_tokens: int, output_tokens: int, system: str, tools: Sequence[ToolDefinition]) -> float:
    """Return how many characters of messages fit beside the reply, the system prompt and the tools."""
    fixed = len(system) + sum(len(tool.name) + len(tool.description) + len(str(tool.input_schema)) for tool in tools)
    return (context_tokens - output_tokens) * CHARS_PER_TOKEN - fixed


def _round_starts(messages: Sequence[Message]) -> Iterator[int]:
    """Yield where a round or a turn begins, oldest first."""
    for position, message in enumerate(messages):
        if position == 0 or isinstance(message, AssistantMessage | UserMessage):
            yield position


def _last_words(messages: Sequence[Message]) -> list[Message]:
    """Return the newest of what the user said in `messages`, without which the rounds after it mean nothing."""
    return next(([message] for message in reversed(messages) if isinstance(message, UserMessage)), [])


def _texts(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(text=text) | SystemReminder(text=text):
            yield text
        case ToolResultMessage(result=ToolResultBlock(content=content)):
            yield from (block.text for block in content if isinstance(block, TextBlock))
        case AssistantMessage(content=blocks):
            for block in blocks:
                if isinstance(block, TextBlock):
                    yield block.text
                elif isinstance(block, ToolUseBlock):
                    yield str(block.input)
