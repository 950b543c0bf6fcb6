"""Result of a subagent's turn in words, for its parent and for people, even after a crash."""

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from panpan.capabilities.subagents.task import TaskTool
from panpan.core.conversation import NEVER_BEGUN, error_result
from panpan.errors import PanpanError, SessionError, TurnLimitError
from panpan.session.log.agent_log import agent_log_path, agent_records
from panpan.session.log.fold import UnfinishedCall, fold_records
from panpan.session.log.session_log import read_records
from panpan.types.content import SummaryDisplay, TextBlock, ToolResultBlock, for_model
from panpan.types.dataclass import dataclass
from panpan.types.events import Event, Output, SubagentEvent, ToolFinished, ToolStarted, TurnEnded
from panpan.types.messages import AssistantMessage, ToolResultMessage, Usage

NO_WORDS = "(it ended without a report)"


@dataclass(slots=True)
class Report:
    """Facts about a turn so far."""

    agent_id: str
    name: str
    text: str = ""
    rounds: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    """Includes its own subagents."""
    duration_s: float = 0.0
    is_interrupted: bool = False

    def follow(self, event: Event) -> None:
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
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        calls = f"{self.tool_calls} tool call{'' if self.tool_calls == 1 else 's'}"
        return f"{rounds} · {calls} · {self.usage.context_tokens:,} tokens · {self.duration_s:.0f} s"

    def output(self, failures: Sequence[Exception], *, notes: Sequence[str] = (), waiting: str = "") -> Output:
        """Return the result for its parent, with notes for it, and for people the work that waits to be merged."""
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
        kept = resume_line(self.name, self.agent_id)
        summary = " · ".join(filter(None, (self.summary, waiting)))
        content = (TextBlock(text=words), for_model("\n" + "\n\n".join([*notes, kept])))
        return Output(content, SummaryDisplay(text=summary), is_error=is_error)


def results_of_subagents(folder: Path, *, parent: str = "") -> Callable[[UnfinishedCall], ToolResultMessage | None]:
    """Return a function that finds the result of an open call that began a subagent."""

    def result(call: UnfinishedCall) -> ToolResultMessage | None:
        use = call.tool_use
        if use.name != TaskTool.name:
            return None
        records = (one for one in agent_records(folder) if (one.tool_use_id, one.parent) == (use.id, parent))
        record = next(records, None)
        path = agent_log_path(folder, record.id) if record is not None else None
        if record is None or path is None:  # a subagent logs before it acts; in a fork, the log is in another session
            return error_result(use.id, NEVER_BEGUN) if call.process_mark else None
        try:
            messages = fold_records(read_records(path)).messages
        except SessionError:
            return None
        last = messages[-1] if messages else None
        kept = for_model(resume_line(record.name, record.id))
        if isinstance(last, AssistantMessage) and last.stop_reason == "end_turn" and not last.tool_uses:
            text = TextBlock(text=f"The session ended right after the subagent was done. It said:\n{last.text}")
            return ToolResultMessage(result=ToolResultBlock(tool_use_id=use.id, content=(text, kept)))
        text = TextBlock(
            text="The session ended while the subagent worked on this. What it has done until then is kept, and so "
            "is its conversation."
        )
        block = ToolResultBlock(tool_use_id=use.id, content=(text, kept), is_error=True)
        return ToolResultMessage(result=block)

    return result


def resume_line(name: str, agent_id: str) -> str:
    """Return the line that tells an agent how to resume a subagent."""
    return f'[{name}, id {agent_id}; Task with subagent_type: "{name}" and resume: "{agent_id}" goes on with it]'


def event_line(event: Event) -> str:
    """Return the line of an event in the output file; empty for most."""
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
    """Return the reply in an event, of whichever agent."""
    while isinstance(event, SubagentEvent):
        event = event.event
    return event if isinstance(event, AssistantMessage) else None
