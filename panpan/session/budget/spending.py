"""Spending: tokens and money for each model and in all, requests, and time."""

from collections.abc import Iterable
from dataclasses import field
from uuid import UUID

from panpan.types.content import DiffDisplay
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, Usage, UserMessage


@dataclass(slots=True)
class ModelCosts:
    """Use of one model."""

    model: str
    replies: int = 0
    usage: Usage = field(default_factory=Usage)
    known_cost_usd: float = 0.0
    unpriced_replies: int = 0
    uncounted_replies: int = 0
    """Replies that were interrupted before the provider had counted their tokens; they are no part of the rest."""
    estimated_replies: int = 0
    """Replies whose cost is an estimate: they were cut short, or came without a credible count."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None if the price of a reply that was counted is not known."""
        return None if self.unpriced_replies else self.known_cost_usd

    def add(self, reply: AssistantMessage) -> None:
        if reply.stop_reason == "interrupted" and reply.cost_usd is None and not reply.usage.context_tokens:
            self.uncounted_replies += 1
            return
        self.replies += 1
        self.estimated_replies += reply.stop_reason == "interrupted"
        self.usage += reply.usage
        if reply.cost_usd is None:
            self.unpriced_replies += 1
        else:
            self.known_cost_usd += reply.cost_usd

    def join(self, other: "ModelCosts") -> None:
        """Count what the model was used for elsewhere, too."""
        self.replies += other.replies
        self.usage += other.usage
        self.known_cost_usd += other.known_cost_usd
        self.unpriced_replies += other.unpriced_replies
        self.uncounted_replies += other.uncounted_replies
        self.estimated_replies += other.estimated_replies

    def since(self, earlier: "ModelCosts") -> "ModelCosts":
        now, before = self.usage.model_dump(), earlier.usage.model_dump()
        return ModelCosts(
            self.model,
            self.replies - earlier.replies,
            Usage(**{name: now[name] - before[name] for name in now}),
            self.known_cost_usd - earlier.known_cost_usd,
            self.unpriced_replies - earlier.unpriced_replies,
            self.uncounted_replies - earlier.uncounted_replies,
            self.estimated_replies - earlier.estimated_replies,
        )


@dataclass(slots=True)
class SessionCosts:
    """Cost of the messages that were added, in all."""

    by_model: dict[str, ModelCosts] = field(default_factory=dict)
    api_duration_s: float = 0.0
    """Seconds spent waiting for models."""
    lines_added: int = 0
    lines_removed: int = 0
    duration_s: float = 0.0
    """Seconds from the beginning of each turn to the last message that follows from it; without those between turns."""
    _is_answered: bool = False
    """True if the newest message is a reply that asks for no tool: a reminder behind it may begin a turn."""
    _turn_began_at: float | None = None
    _turn_s: float = 0.0

    def add(self, message: Message) -> None:
        """Count one more message, in the order of the conversation; costs the same however many came before."""
        self._add_time(message)
        match message:
            case AssistantMessage():
                self._add_reply(message)
            case ToolResultMessage(display=DiffDisplay(files=files)):
                self.lines_added += sum(file.added for file in files)
                self.lines_removed += sum(file.removed for file in files)
            case _:
                pass

    def add_beside(self, reply: AssistantMessage) -> None:
        """Count a reply that is no part of the conversation, such as a summary of it."""
        self._add_reply(reply)

    @property
    def usage(self) -> Usage:
        return sum((costs.usage for costs in self.by_model.values()), Usage())

    @property
    def known_cost_usd(self) -> float:
        return sum(costs.known_cost_usd for costs in self.by_model.values())

    @property
    def uncounted_replies(self) -> int:
        return sum(costs.uncounted_replies for costs in self.by_model.values())

    @property
    def estimated_replies(self) -> int:
        return sum(costs.estimated_replies for costs in self.by_model.values())

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all replies that were counted; None if the price of one is not known."""
        return None if any(costs.unpriced_replies for costs in self.by_model.values()) else self.known_cost_usd

    def _add_reply(self, reply: AssistantMessage) -> None:
        self.by_model.setdefault(reply.model, ModelCosts(reply.model)).add(reply)
        self.api_duration_s += reply.duration_s

    def _add_time(self, message: Message) -> None:
        at = made_at(message.uuid)
        if at is None:  # from a log of another program
            return
        begins = isinstance(message, UserMessage) or (self._is_answered and isinstance(message, SystemReminder))
        self._is_answered = isinstance(message, AssistantMessage) and not message.tool_uses
        if begins or self._turn_began_at is None:
            self._turn_began_at, self._turn_s = at, 0.0
        elif (turn_s := at - self._turn_began_at) > self._turn_s:
            self.duration_s += turn_s - self._turn_s
            self._turn_s = turn_s


def session_costs(messages: Iterable[Message], beside: Iterable[AssistantMessage] = ()) -> SessionCosts:
    """Return what a conversation cost, with replies `beside` it that are no part of it."""
    costs = SessionCosts()
    for message in messages:
        costs.add(message)
    for reply in beside:
        costs.add_beside(reply)
    return costs


def made_at(uuid: str) -> float | None:
    """Return when an id was made, in seconds since 1970; None if it does not tell, not being of version 7."""
    try:
        value = UUID(uuid)
    except ValueError:
        return None
    return (value.int >> 80) / 1000 if value.version == 7 else None


@dataclass(slots=True)
class Spending:
    """A sum that only grows."""

    by_model: dict[str, ModelCosts] = field(default_factory=dict)
    calls: int = 0
    """Requests to a model of which a reply came, whole or cut short; a try that brought nothing is none."""
    seconds: float = 0.0
    """Seconds in which turns ran and nobody waited for the user."""
    api_duration_s: float = 0.0
    """Seconds spent waiting for models, those of requests that ran at the same time added up."""

    @property
    def usage(self) -> Usage:
        return sum((costs.usage for costs in self.by_model.values()), Usage())

    @property
    def tokens(self) -> int:
        """Tokens of all kinds together, input read from a cache included."""
        return sum(costs.usage.context_tokens for costs in self.by_model.values())

    @property
    def known_usd(self) -> float:
        return sum(costs.known_cost_usd for costs in self.by_model.values())

    @property
    def usd(self) -> float | None:
        """US dollars; None if the price of a reply is not known."""
        return None if any(costs.unpriced_replies for costs in self.by_model.values()) else self.known_usd

    @property
    def is_estimated(self) -> bool:
        return any(costs.estimated_replies for costs in self.by_model.values())

    @property
    def unpriced_model(self) -> str | None:
        """A model that has used tokens whose price is not known; None if there is none."""
        costs = self.by_model.values()
        return next((one.model for one in costs if one.unpriced_replies and one.usage.context_tokens), None)

    def add_reply(self, reply: AssistantMessage) -> None:
        self.calls += 1
        self.api_duration_s += reply.duration_s
        self.by_model.setdefault(reply.model, ModelCosts(reply.model)).add(reply)

    def add(self, other: "Spending") -> None:
        self.calls += other.calls
        self.seconds += other.seconds
        self.api_duration_s += other.api_duration_s
        for model, costs in other.by_model.items():
            self.by_model.setdefault(model, ModelCosts(model)).join(costs)

    def copy(self) -> "Spending":
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
