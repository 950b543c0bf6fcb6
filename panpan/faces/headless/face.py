"""What the three output formats have in common: they follow the events of a turn, and say how it ended."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.errors import BudgetError, PanpanError, TurnLimitError
from panpan.session.budget.spending import Spending
from panpan.types.content import PlanDisplay, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import CommandRan, Event, FileChange, PermissionDecided, SubagentEvent, TaskInfo, TurnEnded
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.types.permission import YES, AskedOf, flags_for, single_flags

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a turn."""

    subtype: str = "success"
    exit_code: int = 0
    error: str = ""


def outcome_of_error(error: PanpanError) -> Outcome:
    """Return how a turn that raised `error` ended."""
    match error:
        case TurnLimitError():
            subtype = "error_max_turns"
        case BudgetError():
            subtype = "error_max_budget_usd"
        case _:
            subtype = "error_during_execution"
    return Outcome(subtype, error.exit_code, str(error))


INTERRUPTED = Outcome("error_during_execution", EXIT_INTERRUPTED, "interrupted")


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

    def note_files(self, files: Sequence[FileChange]) -> None:
        """Note what a turn changed that failed, since no event tells it."""
        self.files = files

    def note_spent(self, spent: Spending) -> None:
        """Note what was spent since the last result."""
        self.spent = spent

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


_Kind: TypeAlias = AskedOf | Literal["protected"]

_HOW: Mapping[_Kind, str] = {
    "nobody": "a rule or the mode forbids it, see the result of the call",
    "anybody": f"-p cannot ask; allow it with {YES}, or run panpan without -p",
    "protected": "no flag and no rule allows it; run panpan without -p, which asks",
    "a person": "no flag allows it; run panpan without -p, which asks",
}
_MOST_CALLS = 5
"""Calls with different flags in one line."""


def denials_told(summary: TurnSummary) -> Iterator[str]:
    """Yield a line for each way in which calls were forbidden."""
    denials = [use for use in summary.denials if not _is_repeat(summary.decided[use.id])]
    for kind, how in _HOW.items():
        uses = [use for use in denials if _kind(summary.decided[use.id]) == kind]
        flags = _flags([summary.decided[use.id] for use in uses])
        if flags and kind != "protected":
            how = f"-p cannot ask; allow it with {flags}"
        if uses:
            yield f"{_blocked(uses)}{_why(summary, uses) if kind == 'protected' else ''}; {how}"


def allowed_with(decided: PermissionDecided) -> str:
    """Return the flags that would have let a denied call run; empty where none would."""
    return flags_for(decided.reasons)


def _flags(decided: Sequence[PermissionDecided]) -> str:
    """Return the flags for all calls that flags would have let run, as one command line takes them.

    A call is named with all its flags or not at all, since some of them alone do not let it run.
    """
    by_call = list(dict.fromkeys(filter(None, map(allowed_with, decided))))
    flags = dict.fromkeys(flag for of_call in by_call[:_MOST_CALLS] for flag in single_flags(of_call))
    left_out = len(by_call) - _MOST_CALLS
    more = f" (and those of {left_out} more)" if left_out > 0 else ""
    return f"{' '.join(flags)}{more}"


def _blocked(uses: Sequence[ToolUseBlock]) -> str:
    names = ", ".join(dict.fromkeys(use.name for use in uses))
    return f"{len(uses)} {'call was' if len(uses) == 1 else 'calls were'} blocked ({names})"


def _why(summary: TurnSummary, uses: Sequence[ToolUseBlock]) -> str:
    more = f" (and {len(uses) - 1} more)" if len(uses) > 1 else ""
    return f": {summary.decided[uses[0].id].reasons[0].text}{more}"


def _is_repeat(decided: PermissionDecided) -> bool:
    """True for a call that was stopped because it repeats others; the error of the turn tells of these."""
    return any(reason.kind == "doom-loop" for reason in decided.reasons)


def _kind(decided: PermissionDecided) -> _Kind:
    is_protected = decided.asked_of == "a person" and any(one.kind == "protected" for one in decided.reasons[:1])
    return "protected" if is_protected else decided.asked_of
