"""Base of the three output formats: they follow the events of a turn and report how it ended."""

import json
import signal
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from panpan.errors import (
    AnswerNeededError,
    BudgetError,
    ConfigError,
    ContextOverflowError,
    HookRefusedError,
    PanpanError,
    ProviderError,
    StructuredOutputError,
    TurnLimitError,
)
from panpan.session.budget.spending import Spending
from panpan.types.content import PlanDisplay, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    CommandRan,
    Event,
    FileChange,
    PermissionDecided,
    SubagentEvent,
    TaskInfo,
    TurnEnded,
    Verification,
)
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage
from panpan.types.permission import YES, AskedOf, flags_for, single_flags


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a turn."""

    subtype: str = "success"
    exit_code: int = 0
    error: str = ""
    reason: str = "completed"
    """Reason for the end, in the words of the Agent SDK."""
    api_status: int | None = None
    """HTTP status of the request that failed; None if none did, or if it is not known."""
    cause: PanpanError | None = None
    """The error that ended the turn; None if none did, or if it is a bug."""

    @property
    def asked(self) -> AnswerNeededError | None:
        """The question that ended the turn; None if none did."""
        return self.cause if isinstance(self.cause, AnswerNeededError) else None


def outcome_of_error(error: PanpanError) -> Outcome:
    """Return how a turn that raised `error` ended."""
    status: int | None = None
    match error:
        case TurnLimitError():
            subtype, reason = "error_max_turns", "max_turns"
        case BudgetError():
            subtype, reason = "error_max_budget_usd", "budget_exhausted"
        case StructuredOutputError():
            subtype, reason = "error_max_structured_output_retries", "structured_output_retry_exhausted"
        case ContextOverflowError():
            subtype, reason, status = "error_during_execution", "prompt_too_long", error.status
        case ProviderError():
            subtype, reason, status = "error_during_execution", "api_error", error.status
        case HookRefusedError():
            subtype, reason = "error_during_execution", "hook_stopped"
        case ConfigError():
            subtype, reason = "error_during_execution", "turn_setup_failed"
        case _:
            subtype, reason = "error_during_execution", "model_error"
    return Outcome(subtype, error.exit_code, str(error), reason, status, error)


INTERRUPTED = Outcome("error_during_execution", 128 + signal.SIGINT, "interrupted", "aborted_streaming")


def outcome_of_end(event: TurnEnded) -> Outcome:
    """Return how a turn ended that raised no error."""
    if event.is_interrupted:
        return INTERRUPTED
    problem = event.verification.problem if event.verification is not None else ""
    return Outcome("error_during_execution", 1, problem, "hook_stopped") if problem else Outcome()


class TurnSummary:
    """Figures of one turn, collected from its events for the result object."""

    def __init__(self) -> None:
        self.rounds = 0
        """Replies of the session's own model; those of subagents are no rounds of the turn."""
        self.spent = Spending()
        """Spending since the last result, including background work that has no events."""
        self.spent_in_all = self.spent
        """Spending that a result tells as its costs: that since the last one, or of the whole run."""
        self.last_reply: AssistantMessage | None = None
        self.answer = ""
        """Text of the last reply and of the replies that it continues; or a plan, or the output of a slash command."""
        self.prompts: list[str] = []
        """Ids of the messages of the user that the turn has taken in and that their senders know."""
        self.structured: Sequence[Any] = ()
        """The answer as data that fits the schema of the session; empty if there is none."""
        self.denials: list[ToolUseBlock] = []
        """Forbidden calls, including those of subagents."""
        self.decided: dict[str, PermissionDecided] = {}
        """Decision on each forbidden call, by the call's id."""
        self.has_allowed_call = False
        """True once a call was allowed, also one of a subagent."""
        self._replies_of_subagents: dict[str, AssistantMessage] = {}
        """Last reply of each subagent that may still run, by the subagent's id."""
        self.files: Sequence[FileChange] = ()
        """Files that the turn changed."""
        self.verification: Verification | None = None
        """Evidence for the answer; None if there is nothing to say about it."""

    def follow(self, event: Event) -> None:
        match event:
            case AssistantMessage():
                self.rounds += 1
                self._replies_of_subagents.clear()  # no subagent is running, since the main model was called again
                goes_on = self.last_reply is not None and self.last_reply.is_to_be_continued
                self.answer = self.answer + event.text if goes_on else event.text
                self.last_reply = event
            case TurnEnded(files=files):
                self.files = files
                if event.rounds:  # a turn that woke the model for nothing has no answer of its own
                    self.verification = event.verification
            case UserMessage():
                self.note_prompt(event)
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

    def note_prompt(self, prompt: UserMessage) -> None:
        self.prompts.append(prompt.uuid)

    def keep_named(self, named: Container[str]) -> None:
        """Forget the ids of messages that panpan gave itself."""
        self.prompts = [uuid for uuid in self.prompts if uuid in named]

    def note_structured(self, values: Sequence[Any]) -> None:
        """Note the answer as data, which then is the answer in words, too."""
        self.structured = values
        for value in values:
            self.answer = json.dumps(value, ensure_ascii=False)

    def note_files(self, files: Sequence[FileChange]) -> None:
        """Note the files that a failed turn changed; no event carries them."""
        self.files = files

    def note_spent(self, spent: Spending, in_all: Spending | None = None) -> None:
        """Note the spending since the last result, and that which the result tells as its costs, if it is another."""
        self.spent, self.spent_in_all = spent, spent if in_all is None else in_all

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
        """Report that the session is open."""

    async def prompt_taken(self, prompt: UserMessage, *, is_named: bool) -> None:  # noqa: B027
        """Report that a turn begins with a message; `is_named` is True if its sender gave it its id."""

    async def task_started(self, task: TaskInfo) -> None:  # noqa: B027
        """Report that a background task has started."""

    async def task_ended(self, task: TaskInfo) -> None:  # noqa: B027
        """Report that a background task has ended."""

    @abstractmethod
    async def show(self, event: Event) -> None:
        """Show one event of the running turn."""

    @abstractmethod
    async def end(self, summary: TurnSummary, outcome: Outcome, duration_s: float) -> None:
        """Show the end of the turn."""


_Kind: TypeAlias = AskedOf | Literal["protected"]

_HOW: Mapping[_Kind, str] = {
    "nobody": "a rule, a hook or the mode forbids it, see the result of the call",
    "anybody": f"-p cannot ask; allow it with {YES}, or run panpan without -p",
    "protected": "no flag and no rule allows it; run panpan without -p, which asks",
    "a person": "no flag allows it; run panpan without -p, which asks",
}
_MOST_CALLS = 5
"""Most calls whose flags are named in one line."""


def denials_told(summary: TurnSummary) -> Iterator[str]:
    """Yield a line for each kind of denial in the turn."""
    denials = [use for use in summary.denials if not _is_repeat(summary.decided[use.id])]
    for kind, how in _HOW.items():
        uses = [use for use in denials if _kind(summary.decided[use.id]) == kind]
        flags = _flags([summary.decided[use.id] for use in uses])
        if flags and kind != "protected":
            how = f"-p cannot ask; allow it with {flags}"
        if uses:
            yield f"{_blocked(summary, uses)}{_why(summary, uses) if kind == 'protected' else ''}; {how}"


def allowed_with(decided: PermissionDecided) -> str:
    """Return the flags that would have allowed a denied call; empty if there are none."""
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


def _blocked(summary: TurnSummary, uses: Sequence[ToolUseBlock]) -> str:
    names = ", ".join(dict.fromkeys(summary.decided[use.id].name for use in uses))
    return f"{len(uses)} {'call was' if len(uses) == 1 else 'calls were'} blocked ({names})"


def _why(summary: TurnSummary, uses: Sequence[ToolUseBlock]) -> str:
    more = f" (and {len(uses) - 1} more)" if len(uses) > 1 else ""
    return f": {summary.decided[uses[0].id].reasons[0].text}{more}"


def _is_repeat(decided: PermissionDecided) -> bool:
    """True if a call was stopped because it repeats others; the error of the turn reports these."""
    return any(reason.kind == "doom-loop" for reason in decided.reasons)


def _kind(decided: PermissionDecided) -> _Kind:
    is_protected = decided.asked_of == "a person" and any(one.kind == "protected" for one in decided.reasons[:1])
    return "protected" if is_protected else decided.asked_of
