"""A model that is asked only for what a budget can pay.

The rule: every request goes through here, for a round as for a summary or a title, so that none is forgotten.
"""

import math
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, runtime_checkable

from panpan.config.models import Price
from panpan.session.budget.budget import Budget, Reservation
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.session.context_usage import max_tokens_of, min_tokens_of, text_tokens
from panpan.types.events import (
    ModelEvent,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Waiting,
)
from panpan.types.llm import ModelClient, ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, Usage


class ArrivingReply:
    """Follows a reply while it arrives. `price` is None if it is not known."""

    def __init__(self, request: ModelRequest, price: Price | None) -> None:
        self._request = request
        self._price = price
        self._started: ReplyStarted | None = None
        self._began_s = 0.0
        self._output_tokens = 0

    def follow(self, event: ModelEvent) -> None:
        match event:
            case ReplyStarted():
                self._started, self._began_s, self._output_tokens = event, time.monotonic(), 0
            case TextDelta(text=more) | ThinkingDelta(text=more) | ToolInputDelta(json=more):
                self._output_tokens += text_tokens(more)
            case _:
                pass

    def unsaid(self, reply: AssistantMessage, *, is_limited: bool) -> Spending | None:
        """Return what a whole reply has cost beyond what it says, as an estimate; None if it can be believed.

        If a limit depends on it (`is_limited`), a count far below the estimate is not believed either.
        """
        said = reply.usage.context_tokens - reply.usage.output_tokens
        least = min_tokens_of(self._request) if is_limited else 0
        more_input = max(max_tokens_of(self._request), least) - said if not said or said < least / 2 else 0
        said_output = reply.usage.output_tokens
        is_too_little = not said_output or (is_limited and said_output < self._output_tokens / 2)
        more_output = self._output_tokens - said_output if is_too_little else 0
        usage = Usage(input_tokens=max(0, more_input), output_tokens=max(0, more_output))
        if not usage.context_tokens:
            return None
        usd = 0.0 if self._price is None else self._price.cost_usd(usage)
        costs = ModelCosts(reply.model, usage=usage, known_cost_usd=usd, estimated_replies=1)
        return Spending({reply.model: costs})

    def cut_short(self) -> AssistantMessage | None:
        """Return what came of it, as a reply without content; None if it had not begun. It is forgotten here."""
        started, self._started = self._started, None
        if started is None:
            return None
        usage = started.usage
        if not usage.context_tokens:  # the provider sends it at the end
            usage = Usage(input_tokens=max_tokens_of(self._request))
        usage = usage.model_copy(update={"output_tokens": max(usage.output_tokens, self._output_tokens)})
        return AssistantMessage(
            content=(),
            model=started.model,
            stop_reason="interrupted",
            usage=usage,
            cost_usd=None if self._price is None else self._price.cost_usd(usage),
            duration_s=time.monotonic() - self._began_s,
        )


LEAST_OUTPUT_TOKENS = 1_024
"""Shortest limit of a reply for which a request is worth sending, beside what the model may think."""
ENOUGH_OUTPUT_TOKENS = 8_192
"""Limit of a reply that is long enough not to wait until other requests give back what they have reserved."""
WAITING = "other requests have reserved the rest of the budget"

_ANSWER_TOKENS = 4_096
"""Tokens that a provider adds for the answer if the thinking budget takes all of the reply."""


@runtime_checkable
class PricedClient(Protocol):
    """A client of which it is known how long its replies may be, and what they cost."""

    options: ModelOptions
    price: Price | None


class BudgetedModel:
    """A `ModelClient` that reserves from a budget before each request, and counts what came of it.

    Replies of a model whose terms are not known are only counted.
    """

    def __init__(self, llm: ModelClient, budget: Budget) -> None:
        self._llm = llm
        self._budget = budget

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of one reply, which may be asked to be shorter so that it fits into the budget.

        Raises:
            BudgetError: It does not fit; nothing is sent.
            ProviderError: The model could not be asked.
        """
        tokens = _credible_tokens(request) if self._budget.is_limited else 0
        while self._budget.is_limited:
            released = self._budget.next_release  # before the check, so that no release is missed while others run
            if not self._is_better_later(tokens):
                break
            yield Waiting(WAITING)
            await released.wait()
        request, reservation = self._reserved(request, tokens)
        arriving: ArrivingReply | None = ArrivingReply(request, self._price)
        try:
            async with aclosing(self._llm.stream(request)) as events:
                async for event in events:
                    if isinstance(event, AssistantMessage):
                        self._settle(reservation, event, arriving)
                        arriving = None
                    elif isinstance(event, RetryScheduled):
                        self._count_cut_short(arriving)
                    elif arriving is not None:
                        arriving.follow(event)
                    yield event
        finally:
            self._budget.release(reservation)
            self._count_cut_short(arriving)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return await self._llm.count_tokens(request)

    @property
    def _price(self) -> Price | None:
        return self._llm.price if isinstance(self._llm, PricedClient) else None

    def _settle(self, reservation: Reservation, reply: AssistantMessage, arriving: ArrivingReply | None) -> None:
        self._budget.settle(reservation, reply)
        if arriving is not None and (unsaid := arriving.unsaid(reply, is_limited=self._budget.is_limited)) is not None:
            self._budget.count_unreported(unsaid)

    def _count_cut_short(self, arriving: ArrivingReply | None) -> None:
        if arriving is not None and (reply := arriving.cut_short()) is not None:
            self._budget.count_cut_short(reply)

    def _is_better_later(self, tokens: int) -> bool:
        """Return True if only a short reply fits, and other requests may give back what they do not need."""
        enough = min(self._most_output, ENOUGH_OUTPUT_TOKENS + self._thinking)
        return self._budget.waits_for_others and self._fitting_output(tokens) < enough

    def _reserved(self, request: ModelRequest, tokens: int) -> tuple[ModelRequest, Reservation]:
        if not self._budget.is_limited:
            return request, self._budget.reserve()
        most = self._most_output
        output = max(self._fitting_output(tokens), min(most, LEAST_OUTPUT_TOKENS + self._thinking))
        reservation = self._budget.reserve(tokens=tokens + output, usd=self._most_usd(tokens, output))
        return (replace(request, max_output_tokens=output) if output < most else request), reservation

    def _fitting_output(self, tokens: int) -> int:
        """Return how long a reply the budget can pay beside the input, at most as long as the model is asked for."""
        room, most = self._budget.room, self._most_output
        fitting = min(float(most), room.tokens - tokens)
        of_input, of_reply = self._most_usd(tokens, 0), self._most_usd(tokens, most)
        if of_input is not None and of_reply is not None and of_reply > room.usd:
            share = (room.usd - of_input) / (of_reply - of_input) if of_reply > of_input else 0.0
            fitting = min(fitting, math.floor(most * share))
        return max(0, int(fitting))

    def _most_usd(self, tokens: int, output: int) -> float | None:
        """Return what a request costs at most; a token that goes into the cache may cost more than another."""
        price = self._price
        if price is None:
            return None
        plain = price.cost_usd(Usage(input_tokens=tokens, output_tokens=output))
        return max(plain, price.cost_usd(Usage(cache_creation_input_tokens=tokens, output_tokens=output)))

    @property
    def _thinking(self) -> int:
        return (self._llm.options.thinking_budget_tokens or 0) if isinstance(self._llm, PricedClient) else 0

    @property
    def _most_output(self) -> int:
        if not isinstance(self._llm, PricedClient):
            return 0
        most, thinking = self._llm.options.max_output_tokens, self._thinking
        return thinking + _ANSWER_TOKENS if thinking >= most else most


def _credible_tokens(request: ModelRequest) -> int:
    """Return how many tokens a request has at most; of counts that say less than half of its text, the estimate."""
    most, least = max_tokens_of(request), min_tokens_of(request)
    return most if most >= least / 2 else least
