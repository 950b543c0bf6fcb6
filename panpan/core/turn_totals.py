"""What a turn has used, added up from its messages and those of its subagents."""

from dataclasses import field

from panpan.types.dataclass import dataclass
from panpan.types.events import Compacted, Event, SubagentEvent
from panpan.types.messages import AssistantMessage, Usage


@dataclass(slots=True)
class TurnTotals:
    """Sums over the replies of a turn, or of several."""

    rounds: int = 0
    """Of the session's own model; those of subagents are no rounds of the turn."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    """None as soon as one reply has no known price."""
    api_duration_s: float = 0.0
    usage_by_model: dict[str, Usage] = field(default_factory=dict)
    cost_by_model: dict[str, float | None] = field(default_factory=dict)

    def follow(self, event: Event) -> None:
        """Count what an event of the turn has used, in whichever agent."""
        if isinstance(event, AssistantMessage):
            self.add(event)
            return
        match event.innermost.event if isinstance(event, SubagentEvent) else event:
            case AssistantMessage() as reply:
                self.add_beside(reply)
            case Compacted(compaction=compaction) if compaction.reply is not None:
                self.add_beside(compaction.reply)
            case _:
                pass

    def add(self, reply: AssistantMessage) -> None:
        """Count the reply of a round."""
        self.rounds += 1
        self.add_beside(reply)

    def add_beside(self, reply: AssistantMessage) -> None:
        """Count a reply that is no part of the conversation, such as a summary of it."""
        self.usage += reply.usage
        self.cost_usd = _sum(self.cost_usd, reply.cost_usd)
        self.api_duration_s += reply.duration_s
        self.usage_by_model[reply.model] = self.usage_by_model.get(reply.model, Usage()) + reply.usage
        self.cost_by_model[reply.model] = _sum(self.cost_by_model.get(reply.model, 0.0), reply.cost_usd)


def _sum(so_far: float | None, more: float | None) -> float | None:
    return None if so_far is None or more is None else so_far + more
