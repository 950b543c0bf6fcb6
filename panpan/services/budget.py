"""The money that a session may cost: no request is sent once it is spent, or where it cannot be counted."""

from collections.abc import Sequence

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import BudgetError
from panpan.types.messages import AssistantMessage


class Budget(Hook):
    """Ends the turn before a request that the budget has no money for.

    A reply that the user interrupted has no price and counts as nothing. A single reply may cost more than what is
    left; the budget stops the next one.

    Args:
        limit_usd: US dollars for the whole session, what was spent before it was resumed included.
    """

    def __init__(self, limit_usd: float) -> None:
        self._limit_usd = limit_usd
        self._spent_usd = 0.0
        self._counted: set[str] = set()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        """Count what is new.

        Raises:
            BudgetError: The money is spent, or a reply has no known price.
        """
        await self.before_spending(round_.conversation)
        return ()

    async def before_spending(self, conversation: Conversation) -> None:
        """Count what is new.

        Raises:
            BudgetError: The money is spent, or a reply has no known price.
        """
        for reply in self._new_replies(conversation):
            if reply.cost_usd is None and reply.stop_reason != "interrupted" and reply.usage.context_tokens:
                raise BudgetError(
                    f"the price of a reply of {reply.model or 'the model'} is not known, so that what is spent cannot "
                    "be counted; go on without --max-budget-usd"
                )
            self._counted.add(reply.uuid)
            self._spent_usd += reply.cost_usd or 0.0
        if self._spent_usd >= self._limit_usd:
            raise BudgetError(
                f"${self._spent_usd:.4f} of a budget of ${self._limit_usd:.4f} is spent; raise --max-budget-usd"
            )

    def _new_replies(self, conversation: Conversation) -> list[AssistantMessage]:
        """Return the replies since the last count, oldest first; looks at no older message, however long it all is.

        All that were counted are known, and not only the newest: that one may be gone when the user has gone back.
        """
        found: list[AssistantMessage] = []
        for message in reversed(conversation.messages):
            if isinstance(message, AssistantMessage):
                if message.uuid in self._counted:
                    break
                found.append(message)
        beside = [reply for reply in conversation.replies_beside if reply.uuid not in self._counted]
        return [*beside, *found[::-1]]


def check_price_known(limit_usd: float | None, *, model: str, is_price_known: bool) -> None:
    """Refuse to start with a budget that cannot be kept.

    Raises:
        BudgetError: There is a budget and the model has no known price.
    """
    if limit_usd is not None and not is_price_known:
        raise BudgetError(
            f"the price of {model} is not known, so that a budget cannot be kept; start without --max-budget-usd, or "
            "choose a model with a known price"
        )
