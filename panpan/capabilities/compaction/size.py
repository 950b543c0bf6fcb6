"""How large a conversation is: the estimate of each message, put right by what the provider counted for the whole."""

from collections.abc import Iterable, Sequence

from panpan.core.conversation import Conversation
from panpan.session.context_usage import used_tokens
from panpan.session.token_estimate import message_tokens, text_tokens, tool_tokens
from panpan.types.messages import Message

_LEAST_FACTOR, _MOST_FACTOR = 0.5, 3.0


class Size:
    """Weighs messages of one conversation, in tokens.

    Args:
        conversation: As it is now.
    """

    def __init__(self, conversation: Conversation) -> None:
        fixed = text_tokens(conversation.system) + tool_tokens(conversation.tools)
        estimate = fixed + sum(map(message_tokens, conversation.sent))
        self.whole = used_tokens(conversation)
        """Of the request as it would be now."""
        self.factor = min(_MOST_FACTOR, max(_LEAST_FACTOR, self.whole / max(1, estimate)))
        """By what an estimate is multiplied."""
        self.fixed_tokens = round(fixed * self.factor)
        """Of what every request has: the system prompt and the tools."""

    def of_one(self, message: Message) -> float:
        """Return what one message has."""
        return message_tokens(message) * self.factor

    def of_text(self, text: str) -> float:
        """Return what a text has."""
        return text_tokens(text) * self.factor

    def of(self, messages: Iterable[Message]) -> float:
        """Return what messages have together."""
        return sum(map(self.of_one, messages))

    def of_request(self, messages: Sequence[Message]) -> int:
        """Return what a request with these messages has."""
        return round(self.fixed_tokens + self.of(messages))
