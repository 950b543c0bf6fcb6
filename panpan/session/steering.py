"""Messages that the user sends while a turn runs, and that the model gets at the next boundary of a round.

The rule: a message waits here, or it is in the conversation, and never both. What still waits when the turn ends stays
here, for the face to put it back into its editor or to send it as the next prompt.
"""

from collections.abc import Sequence

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.types.messages import AssistantMessage, UserMessage


class Steering(Hook):
    """Delivers what waits, in order; a turn that would have ended goes on with it.

    Let it be the last hook that adds something after a round: what another one refuses then still waits.
    """

    def __init__(self) -> None:
        self._waiting: list[UserMessage] = []
        self._handed_over: Sequence[UserMessage] = ()
        """Given to the loop, which an interrupt may stop before it has put all of them into the conversation."""
        self._is_reply_cut = False
        """True if the model is asked to go on in mid-sentence, where nothing should come between."""

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """What was not delivered yet, oldest first."""
        return tuple(self._waiting)

    @property
    def wants_turn(self) -> bool:
        return bool(self._waiting)

    def add(self, message: str | UserMessage) -> UserMessage:
        """Let a message wait for the next boundary, and return it."""
        added = UserMessage.of(message) if isinstance(message, str) else message
        self._waiting.append(added)
        return added

    def take_first(self) -> UserMessage | None:
        """Take out the oldest message that waits, as for a turn of its own; None if none does."""
        return self._waiting.pop(0) if self._waiting else None

    def take_last(self) -> UserMessage | None:
        """Take back the newest message that waits, as for an editor; None if none does."""
        return self._waiting.pop() if self._waiting else None

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._is_reply_cut = False
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return () if self._is_reply_cut else self._deliver(round_.conversation)

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        self._is_reply_cut = reply.is_to_be_continued and round_.conversation.awaits_model
        if self._is_reply_cut or round_.is_last:  # nobody would answer after the last round
            return ()
        return self._deliver(round_.conversation)

    async def turn_ended(self, conversation: Conversation) -> None:
        self._take_back(conversation)

    def _deliver(self, conversation: Conversation) -> Sequence[Addition]:
        self._take_back(conversation)
        self._handed_over, self._waiting = tuple(self._waiting), []
        return self._handed_over

    def _take_back(self, conversation: Conversation) -> None:
        """Let those wait again that were handed over and did not get into the conversation."""
        if self._handed_over:
            said = {message.uuid for message in conversation.messages}
            self._waiting[:0] = [message for message in self._handed_over if message.uuid not in said]
            self._handed_over = ()
