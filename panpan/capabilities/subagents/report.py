"""What came of a subagent's turn: followed while it runs, and put into words for its parent and for people."""

from collections.abc import Sequence
from dataclasses import field

from panpan.errors import PanpanError, TurnLimitError
from panpan.types.dataclass import dataclass
from panpan.types.display import SummaryDisplay
from panpan.types.events import Event, SubagentEvent, ToolFinished, ToolStarted, TurnEnded
from panpan.types.messages import AssistantMessage, Usage
from panpan.types.tool import Output

NO_WORDS = "(it ended without a report)"


@dataclass(slots=True)
class Report:
    """What is known of a turn so far."""

    agent_id: str
    name: str
    """Of its definition."""
    text: str = ""
    """What it said last."""
    rounds: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    """With that of its own subagents."""
    duration_s: float = 0.0
    is_interrupted: bool = False

    def follow(self, event: Event) -> None:
        """Take in what has happened."""
        match event:
            case AssistantMessage():
                self.rounds += 1
                self.tool_calls += len(event.tool_uses)
                self.text = event.text.strip() or self.text
            case TurnEnded():
                self.duration_s, self.is_interrupted = event.duration_s, event.is_interrupted
            case _:
                pass
        if (reply := _reply(event)) is not None:
            self.usage += reply.usage

    @property
    def summary(self) -> str:
        """One line for people."""
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        calls = f"{self.tool_calls} tool call{'' if self.tool_calls == 1 else 's'}"
        return f"{rounds} · {calls} · {self.usage.context_tokens:,} tokens · {self.duration_s:.0f} s"

    def output(self, failures: Sequence[Exception], *, notes: Sequence[str] = (), waiting: str = "") -> Output:
        """Return the result of the call that ran it.

        Args:
            failures: What ended it, the first first; nothing where it ended well.
            notes: What its parent should know besides, one sentence each.
            waiting: What of its work is not in the project yet, in a few words for people.
        """
        words, is_error = self.text or NO_WORDS, False
        match failures[0] if failures else None:
            case TurnLimitError():
                words = f"It was stopped after {self.rounds} rounds, the most that it may take. It said last:\n{words}"
            case PanpanError() as error:
                words, is_error = f"The subagent failed: {error}. It said last:\n{words}", True
            case None if self.is_interrupted:
                words, is_error = f"The subagent was stopped before it was done. It said last:\n{words}", True
            case None:
                pass
            case error:
                raise error
        kept = going_on(self.name, self.agent_id)
        summary = " · ".join(filter(None, (self.summary, waiting)))
        return Output("\n\n".join([words, *notes, kept]), SummaryDisplay(text=summary), is_error=is_error)


def going_on(name: str, agent_id: str) -> str:
    """Return the line that tells an agent how to go on with a subagent."""
    return f'[{name}, id {agent_id}; Task with subagent_type: "{name}" and resume: "{agent_id}" goes on with it]'


def told(event: Event) -> str:
    """Return what a file tells of an event: what was said and called; nothing for most."""
    match event:
        case AssistantMessage():
            return event.text.strip()
        case ToolStarted():
            return f"· {event.name} {event.title}".rstrip()
        case ToolFinished(is_error=True):
            return "  failed"
        case _:
            return ""


def _reply(event: Event) -> AssistantMessage | None:
    """Return the reply that an event is or holds, of whichever agent."""
    while isinstance(event, SubagentEvent):
        event = event.event
    return event if isinstance(event, AssistantMessage) else None
