"""Tells the model when its next reply is the last of the turn, so that the turn ends with an answer."""

from collections.abc import Sequence

from panpan.core.hooks import Addition, Hook, Round
from panpan.types.messages import SystemReminder

_WRAP_UP = (
    "Your next reply is the last one of this turn, so call no more tools: nobody would read their results. Say what "
    "you have done and found, what is still open, and how to go on from here."
)


class RoundLimit(Hook):
    """Reminds the model to wrap up on the last round."""

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return (SystemReminder(text=_WRAP_UP, cause="limit:rounds"),) if round_.is_last else ()
