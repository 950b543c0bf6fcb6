"""What the three output formats have in common: they follow the events of a turn, and say how it ended."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from panpan.capabilities.background.background import TaskInfo
from panpan.faces.headless.outcome import Outcome
from panpan.session.budget.spending import Spending
from panpan.types.content import ToolUseBlock
from panpan.types.display import PlanDisplay
from panpan.types.events import CommandRan, Event, PermissionDecided, SubagentEvent, TurnEnded
from panpan.types.file_change import FileChange
from panpan.types.messages import AssistantMessage, ToolResultMessage


class TurnSummary:
    """What the result object of a turn is made from."""

    def __init__(self) -> None:
        self.rounds = 0
        """Replies of the session's own model; those of subagents are no rounds of the turn."""
        self.spent = Spending()
        """Since the last result, also by what no event tells of, such as background tasks."""
        self.last_reply: AssistantMessage | None = None
        self.answer = ""
        """The text of the last reply, and before it that of those that it goes on with; or a plan, or what a slash
        command showed."""
        self.denials: list[ToolUseBlock] = []
        """The calls that were forbidden, those of subagents, too."""
        self.decided: dict[str, PermissionDecided] = {}
        """Why each of them was, by its id."""
        self.has_allowed_call = False
        """True once a call was allowed, be it one of a subagent."""
        self._replies_of_subagents: dict[str, AssistantMessage] = {}
        """The last one of each that may still run, by its id."""
        self.files: Sequence[FileChange] = ()
        """What the turn changed."""

    def follow(self, event: Event) -> None:
        """Note what an event adds."""
        match event:
            case AssistantMessage():
                self.rounds += 1
                self._replies_of_subagents.clear()  # none runs any more, or nobody would have asked the model
                goes_on = self.last_reply is not None and self.last_reply.is_to_be_continued
                self.answer = self.answer + event.text if goes_on else event.text
                self.last_reply = event
            case TurnEnded(files=files):
                self.files = files
            case ToolResultMessage(display=PlanDisplay(is_result=True, text=text)) | CommandRan(text=text):
                self.answer = text
            case PermissionDecided(is_denial=True):
                self._note_denial(event, self.last_reply)
            case PermissionDecided(is_allowed=True):
                self.has_allowed_call = True
            case SubagentEvent():
                self._follow_subagent(event.innermost)
            case _:
                pass

    def _follow_subagent(self, here: SubagentEvent) -> None:
        match here.event:
            case AssistantMessage() as reply:
                self._replies_of_subagents[here.agent_id] = reply
            case PermissionDecided(is_denial=True) as decided:
                self._note_denial(decided, self._replies_of_subagents.get(here.agent_id))
            case PermissionDecided(is_allowed=True):
                self.has_allowed_call = True
            case _:
                pass

    def _note_denial(self, decided: PermissionDecided, asked_in: AssistantMessage | None) -> None:
        if asked_in is not None:
            self.denials.extend(use for use in asked_in.tool_uses if use.id == decided.tool_use_id)
            self.decided[decided.tool_use_id] = decided


class HeadlessFace(ABC):
    """One output format."""

    async def begin(self) -> None:  # noqa: B027  (most formats have nothing to say yet)
        """The session is open."""

    async def task_started(self, task: TaskInfo) -> None:  # noqa: B027
        """A background task runs now."""

    async def task_ended(self, task: TaskInfo) -> None:  # noqa: B027
        """A background task has ended."""

    @abstractmethod
    async def show(self, event: Event) -> None:
        """One event of the running turn."""

    @abstractmethod
    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        """The turn is over."""
