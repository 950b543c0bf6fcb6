"""What of a message the user typed."""

from panpan.types.content import TextBlock
from panpan.types.messages import UserMessage


def typed_text(message: UserMessage) -> str:
    """Return what the user typed, without the files that he attached to it."""
    return next((block.text for block in message.content if isinstance(block, TextBlock)), "")
