"""Estimates the cost of a reply whose usage the provider does not say, or not credibly: it bills the reply anyway."""

import time

from panpan.config.models import Price
from panpan.session.budget.spending import Spending
from panpan.session.context_usage import least_tokens, most_tokens
from panpan.session.session_costs import ModelCosts
from panpan.session.token_estimate import text_tokens
from panpan.types.events import ModelEvent, ReplyStarted, TextDelta, ThinkingDelta, ToolInputDelta
from panpan.types.llm import ModelRequest
from panpan.types.messages import AssistantMessage, Usage


class ArrivingReply:
    """Follows a reply while it arrives.

    Args:
        request: What was sent.
        price: Of the model; None where it is not known.
    """

    def __init__(self, request: ModelRequest, price: Price | None) -> None:
        self._request = request
        self._price = price
        self._started: ReplyStarted | None = None
        self._began_s = 0.0
        self._output_tokens = 0

    def follow(self, event: ModelEvent) -> None:
        """Note what an event adds."""
        match event:
            case ReplyStarted():
                self._started, self._began_s, self._output_tokens = event, time.monotonic(), 0
            case TextDelta(text=more) | ThinkingDelta(text=more) | ToolInputDelta(json=more):
                self._output_tokens += text_tokens(more)
            case _:
                pass

    def unsaid(self, reply: AssistantMessage, *, is_limited: bool) -> Spending | None:
        """Return what a whole reply has cost beyond what it says, as an estimate; None where it can be believed.

        Args:
            reply: The one that was followed.
            is_limited: True if a limit depends on it; then a count far below the estimate is not believed either.
        """
        said = reply.usage.context_tokens - reply.usage.output_tokens
        least = least_tokens(self._request) if is_limited else 0
        more_input = max(most_tokens(self._request), least) - said if not said or said < least / 2 else 0
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
        """Return what came of it, as a reply without content; None where it had not begun. It is forgotten here."""
        started, self._started = self._started, None
        if started is None:
            return None
        usage = started.usage
        if not usage.context_tokens:  # the provider tells it at the end
            usage = Usage(input_tokens=most_tokens(self._request))
        usage = usage.model_copy(update={"output_tokens": max(usage.output_tokens, self._output_tokens)})
        return AssistantMessage(
            content=(),
            model=started.model,
            stop_reason="interrupted",
            usage=usage,
            cost_usd=None if self._price is None else self._price.cost_usd(usage),
            duration_s=time.monotonic() - self._began_s,
        )
