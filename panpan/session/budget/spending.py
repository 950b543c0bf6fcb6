"""What was spent: tokens and money for each model, requests, and time."""

from dataclasses import field

from panpan.session.session_costs import ModelCosts
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Usage


@dataclass(slots=True)
class Spending:
    """A sum that only grows."""

    by_model: dict[str, ModelCosts] = field(default_factory=dict)
    """In the order in which they were first used."""
    calls: int = 0
    """Requests to a model of which a reply came, whole or cut short; a try that brought nothing is none."""
    seconds: float = 0.0
    """In which turns ran and nobody waited for the user."""
    api_duration_s: float = 0.0
    """Seconds spent waiting for models, those of requests that ran at the same time added up."""

    @property
    def usage(self) -> Usage:
        """Tokens of all models."""
        return sum((costs.usage for costs in self.by_model.values()), Usage())

    @property
    def tokens(self) -> int:
        """Tokens of all kinds together, input read from a cache included."""
        return sum(costs.usage.context_tokens for costs in self.by_model.values())

    @property
    def known_usd(self) -> float:
        """US dollars of all replies whose price is known."""
        return sum(costs.known_cost_usd for costs in self.by_model.values())

    @property
    def usd(self) -> float | None:
        """US dollars; None where the price of a reply is not known."""
        return None if any(costs.unpriced_replies for costs in self.by_model.values()) else self.known_usd

    @property
    def is_estimated(self) -> bool:
        """True if a part of it is an estimate."""
        return any(costs.estimated_replies for costs in self.by_model.values())

    @property
    def unpriced_model(self) -> str | None:
        """A model that has used tokens whose price is not known; None where there is none."""
        costs = self.by_model.values()
        return next((one.model for one in costs if one.unpriced_replies and one.usage.context_tokens), None)

    def add_reply(self, reply: AssistantMessage) -> None:
        """Count a reply, which one request was made for."""
        self.calls += 1
        self.api_duration_s += reply.duration_s
        self.by_model.setdefault(reply.model, ModelCosts(reply.model)).add(reply)

    def add(self, other: "Spending") -> None:
        """Count what was spent elsewhere, too."""
        self.calls += other.calls
        self.seconds += other.seconds
        self.api_duration_s += other.api_duration_s
        for model, costs in other.by_model.items():
            self.by_model.setdefault(model, ModelCosts(model)).join(costs)

    def copy(self) -> "Spending":
        """Return what it is now."""
        same = Spending()
        same.add(self)
        return same

    def since(self, earlier: "Spending") -> "Spending":
        """Return what came to it since it was `earlier`; models that were not used since are left out."""
        later = Spending(
            calls=self.calls - earlier.calls,
            seconds=self.seconds - earlier.seconds,
            api_duration_s=self.api_duration_s - earlier.api_duration_s,
        )
        for model, costs in self.by_model.items():
            more = costs.since(earlier.by_model.get(model, ModelCosts(model)))
            if more != ModelCosts(model):
                later.by_model[model] = more
        return later
