"""What the three output formats have in common: they follow the events of a turn, and say how it ended."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from panpan.core.turn_totals import TurnTotals
from panpan.types.content import ToolUseBlock
from panpan.types.display import PlanDisplay
from panpan.types.events import Compacted, Event, PermissionDecided, TurnEnded
from panpan.types.file_change import FileChange
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.ui.headless.outcome import Outcome


class TurnSummary:
    """What the result object of a turn is made from."""

    def __init__(self) -> None:
        self.totals = TurnTotals()
        self.last_reply: AssistantMessage | None = None
        self.answer = ""
        """The text of the last reply, and before it that of those that it goes on with; or a plan in its place."""
        self.denials: list[ToolUseBlock] = []
        self.files: Sequence[FileChange] = ()
        """What the turn changed."""

    def follow(self, event: Event) -> None:
        """Note what an event adds."""
        match event:
            case AssistantMessage():
                goes_on = self.last_reply is not None and self.last_reply.is_to_be_continued
                self.answer = self.answer + event.text if goes_on else event.text
                self.last_reply = event
                self.totals.add(event)
            case Compacted(compaction=compaction) if compaction.reply is not None:
                self.totals.add_beside(compaction.reply)
            case TurnEnded(files=files):
                self.files = files
            case ToolResultMessage(display=PlanDisplay(is_result=True, text=plan)):
                self.answer = plan
            case PermissionDecided(is_allowed=False) if self.last_reply is not None:
                self.denials.extend(use for use in self.last_reply.tool_uses if use.id == event.tool_use_id)
            case _:
                pass


class HeadlessFace(ABC):
    """One output format."""

    async def begin(self) -> None:  # noqa: B027  (most formats have nothing to say yet)
        """The session is open."""

    @abstractmethod
    async def show(self, event: Event) -> None:
        """One event of the running turn."""

    @abstractmethod
    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        """The turn is over."""
