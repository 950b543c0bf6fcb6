"""Where reminders come from: each source watches one thing, and says what the model should know of it now."""

from collections.abc import Sequence

from panpan.core.conversation import Conversation
from panpan.core.hooks import Round, ToolCall
from panpan.types.messages import SystemReminder
from panpan.types.tool import Output


class ReminderSource:
    """One thing that is watched; each point does nothing unless it is overridden.

    The rule: `reminders` may be asked any number of times and returns what holds now. What the conversation has is not
    told again, since nothing is told twice for the same cause: so a cause names the occasion, such as
    `file:changed:3f2a`, and not only its kind.
    """

    async def turn_started(self, conversation: Conversation) -> None:
        """The user has said something."""

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        """A call has run: a file was read or edited, say."""

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        """Return what the model should know before it is asked."""
        return ()

    async def turn_ended(self, conversation: Conversation) -> None:
        """The turn is over, in whatever way."""

    async def history_replaced(self, conversation: Conversation) -> None:
        """What was said before is not all there any more."""
