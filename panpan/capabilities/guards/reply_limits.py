"""Guards of replies: none that is no answer, the last round told, and the user's interruption told."""

from collections.abc import Sequence

from panpan.core.conversation import INTERRUPTED, INTERRUPTED_BEFORE, Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import ContextOverflowError, ProviderError
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage

_MOST_EMPTY_REPLIES = 3
_MOST_CONTINUATIONS = 3

_EMPTY = (
    "Your last reply held no text and no tool call. Go on with the task, or say what you have found or what is missing."
)
_CUT = (
    "Your last reply reached the limit on its length and was cut off at its end. Go on exactly where it stops, without "
    "repeating anything; do what is left in smaller steps."
)


class ReplyLimits(Hook):
    """Asks again after empty and cut replies, and ends the turn where asking again cannot help."""

    def __init__(self) -> None:
        self._empty_replies = 0
        self._continuations = 0

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._empty_replies = self._continuations = 0
        return ()

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        """End the turn where asking again cannot help; what such a reply asks for is not run."""
        match reply.stop_reason:
            case "refusal":
                raise ProviderError(
                    "the model refused to answer; put the request in other words, or try another model with --model"
                )
            case "model_context_window_exceeded":
                raise ContextOverflowError(
                    "the conversation has filled the model's context window; make it shorter with /compact, start a "
                    "new session, or choose a model with a larger window with --model"
                )
            case _:
                pass

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        """Return a nudge where the reply is none yet."""
        match reply.stop_reason:
            case "pause_turn" | "interrupted":
                return ()
            case "max_tokens" if not reply.tool_uses:
                return self._after_cut(round_)
            case _ if reply.tool_uses or reply.text.strip():
                self._empty_replies = self._continuations = 0
                return ()
            case _:
                return self._after_empty()

    def _after_cut(self, round_: Round) -> Sequence[Addition]:
        self._continuations += 1
        if round_.is_last or self._continuations > _MOST_CONTINUATIONS:
            return ()  # the answer stays as long as it is; faces say so
        return (SystemReminder(text=_CUT, cause="reply:cut"),)

    def _after_empty(self) -> Sequence[Addition]:
        self._empty_replies += 1
        if self._empty_replies > _MOST_EMPTY_REPLIES:
            raise ProviderError(
                f"the model sent {self._empty_replies} empty replies in a row; try again, or another model with --model"
            )
        return (SystemReminder(text=_EMPTY, cause="reply:empty"),)


_WRAP_UP = (
    "Your next reply is the last one of this turn, so call no more tools: nobody would read their results. Say what "
    "you have done and found, what is still open, and how to go on from here."
)


class RoundLimit(Hook):
    """Reminds the model to wrap up on the last round."""

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return (SystemReminder(text=_WRAP_UP, cause="limit:rounds"),) if round_.is_last else ()


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
    for message in reversed(messages):
        match message:
            case ToolResultMessage() if message.is_error and message.text.startswith((INTERRUPTED, INTERRUPTED_BEFORE)):
                return True
            case AssistantMessage():
                return message.stop_reason == "interrupted"
            case _:
                pass
    return False
