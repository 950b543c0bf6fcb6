"""Tells the model that the user stopped it, so that it does not take up the old work as if nothing had happened.

The notice comes with the next turn, also where the session was closed in between, since the log keeps how a turn ended.
"""

from collections.abc import Sequence

from panpan.core.conversation import INTERRUPTED, INTERRUPTED_BEFORE, Conversation
from panpan.core.hooks import Addition, Hook
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage

_NOTICE = (
    "The user stopped your previous turn before it was finished. What it had begun may be done in part, so look before "
    "you rely on it. Follow the user's new message, and take the old work up again only if it asks for that."
)


class InterruptNotice(Hook):
    """Starts the turn after an interrupt with a notice."""

    def __init__(self) -> None:
        self._was_interrupted = False

    async def interrupted(self, conversation: Conversation) -> None:
        self._was_interrupted = True

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        was_interrupted = self._was_interrupted or _ended_in_interrupt(conversation.messages)
        self._was_interrupted = False
        return (SystemReminder(text=_NOTICE, cause="interrupted"),) if was_interrupted else ()


def _ended_in_interrupt(messages: Sequence[Message]) -> bool:
    """Return whether the newest reply, or a result behind it, was cut short by the user."""
    for message in reversed(messages):
        match message:
            case ToolResultMessage() if message.is_error and message.text.startswith((INTERRUPTED, INTERRUPTED_BEFORE)):
                return True
            case AssistantMessage():
                return message.stop_reason == "interrupted"
            case _:
                pass
    return False
