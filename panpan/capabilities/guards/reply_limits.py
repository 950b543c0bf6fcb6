"""Replies that are no answer: empty, cut short, refused, or ended by a full context window.

Each is followed up a bounded number of times, and then ends the turn in words that say what happened.
"""

from collections.abc import Sequence

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import ContextOverflowError, ProviderError
from panpan.types.messages import AssistantMessage, SystemReminder

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
        """End the turn where asking again cannot help; what such a reply asks for is not run.

        Raises:
            ContextOverflowError: The conversation has filled the model's context window.
            ProviderError: The model refused, or somebody on its side filtered what it said.
        """
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
        """Return a nudge where the reply is none yet.

        Raises:
            ProviderError: The model went on sending nothing.
        """
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
            return ()  # the answer stays as long as it is; `note_on_end` says so
        return (SystemReminder(text=_CUT, cause="reply:cut"),)

    def _after_empty(self) -> Sequence[Addition]:
        self._empty_replies += 1
        if self._empty_replies > _MOST_EMPTY_REPLIES:
            raise ProviderError(
                f"the model sent {self._empty_replies} empty replies in a row; try again, or another model with --model"
            )
        return (SystemReminder(text=_EMPTY, cause="reply:empty"),)


def note_on_end(reply: AssistantMessage) -> str | None:
    """Return what a user should know about the reply that ended a turn, as one line; None where there is nothing."""
    if reply.stop_reason == "max_tokens" and not reply.tool_uses:
        return "the answer is cut off: the model reached the limit on the length of its replies"
    return None
