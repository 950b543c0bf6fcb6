"""Events for clients of a session beside those of its turns."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.errors import PanpanError
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    Event,
    SubagentEvent,
    TaskInfo,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolProgress,
)
from panpan.types.messages import Message, UserMessage
from panpan.types.permission import PermissionMode, PermissionQuestion, PlanProposal, UserQuestion

Delivery: TypeAlias = Literal["steer", "queue"]
"""Time at which a prompt reaches the model: at the next round of the running turn, or in a turn of its own."""

Activity: TypeAlias = Literal["idle", "busy", "retrying", "asking"]
"""State of a session: no turn runs, one does, it pauses before the model is asked again, or it waits for an answer."""


@dataclass(frozen=True, slots=True)
class SessionUse:
    """Cost of a session, and what fills its context window, as of the end of a round."""

    cost_usd: float = 0.0
    """US dollars that are known to be spent."""
    is_cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    context_tokens: int = 0
    """Tokens that the next request has, about."""
    context_window: int | None = None
    """Tokens of a request and its reply together; None if it is not known of the model."""

    @property
    def context_percent(self) -> float | None:
        """Share of the context window that is used, from 0 to 100; None if nothing was said or no size is known."""
        return 100 * self.context_tokens / self.context_window if self.context_tokens and self.context_window else None


@dataclass(frozen=True, slots=True)
class Status:
    """State of a session as data."""

    activity: Activity = "idle"
    attempt: int = 0
    """Number of the next try while it is `retrying`; the first one was 1."""
    retry_at: float = 0.0
    """Time of the next try, in seconds since 1970."""
    reason: str = ""
    """Reason for the retry."""
    waiting: int = 0
    """Prompts that wait for delivery."""
    mode: PermissionMode = "default"
    model: str = ""
    title: str = ""
    use: SessionUse = SessionUse()


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The state of the session is another one."""

    status: Status


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A turn began."""

    prompt: UserMessage | None
    """The prompt; None if the model was woken for its own news."""
    client: str = ""
    """Client that sent the prompt."""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn raised an error instead of a `TurnEnded`."""

    error: PanpanError


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """Nothing of the turn runs any more; always its last event."""


@dataclass(frozen=True, slots=True)
class MessageRecorded:
    """A message joined the conversation, and no event of a turn carries it, such as the result of a stopped call."""

    message: Message


@dataclass(frozen=True, slots=True)
class Rewound:
    """The conversation is an earlier one again."""

    last: str
    """Id of the message that is the last one now; empty if there is none."""


@dataclass(frozen=True, slots=True)
class PromptsReturned:
    """Prompts were not delivered, since their turn was stopped, and go back to the client that sent them."""

    prompts: Sequence[UserMessage]
    client: str


@dataclass(frozen=True, slots=True)
class ClientChanged:
    """A client of another process joined or left."""

    client: str
    is_here: bool


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A background task began or ended."""

    task: TaskInfo


@dataclass(frozen=True, slots=True)
class FileEdited:
    """A call changed a file, or made or deleted it."""

    path: str
    """Path as the difference shows it: relative to the workspace, or absolute outside of it."""
    tool_use_id: str
    """The call."""


@dataclass(frozen=True, slots=True)
class Warned:
    """The session has a warning for the user."""

    text: str
    """One sentence."""


TerminalCommand: TypeAlias = Literal["prompt.submit", "prompt.append", "prompt.clear", "hint.show"]
"""Command for a terminal: send the text in its input box, add to it, clear it, or show a hint."""


@dataclass(frozen=True, slots=True)
class CommandRequested:
    """A client wants the terminals that joined the session to do something."""

    command: TerminalCommand
    text: str = ""
    """Text to add, or hint to show; not cleaned for a terminal."""


Question: TypeAlias = PermissionQuestion | Sequence[UserQuestion] | PlanProposal
"""A question about a call, questions of the model, or a plan to approve."""


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A question waits for an answer; every client that answers questions may give it."""

    id: int
    question: Question


PermissionReply: TypeAlias = Literal["", "once", "always", "reject"]
"""Answer to a question about a call in one word: yes, yes to all such calls, or no. Empty for other questions."""


@dataclass(frozen=True, slots=True)
class QuestionClosed:
    """A question is answered, or withdrawn."""

    id: int
    client: str
    """Client whose answer counts; empty if the question was withdrawn."""
    reply: PermissionReply = ""
    """Answer to a question about a call."""


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """A content block of the reply that is arriving, as far as it is there."""

    index: int
    kind: Literal["text", "thinking", "redacted_thinking", "tool_use"]
    text: str
    """Text, thinking or JSON arguments so far."""
    tool_use_id: str = ""
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class Resync:
    """A client fell behind, and deltas were left out; what they had added is here."""

    blocks: Sequence[OpenBlock]
    """The reply that is arriving; empty if none is."""
    is_whole: bool = True
    """False if other events were left out, too, so that the client has to read the session again."""


HubEvent: TypeAlias = (
    Event
    | StatusChanged
    | TurnBegan
    | TurnFailed
    | TurnClosed
    | MessageRecorded
    | Rewound
    | PromptsReturned
    | ClientChanged
    | TaskChanged
    | FileEdited
    | Warned
    | CommandRequested
    | QuestionAsked
    | QuestionClosed
    | Resync
)
"""Event for a client. Deltas may be left out for a client that is slow, and nothing else."""


def delta_size(event: HubEvent) -> int:
    """Return the characters that a delta or a piece of output adds; 0 for any other event."""
    match event.innermost.event if isinstance(event, SubagentEvent) else event:
        case TextDelta(text=text) | ThinkingDelta(text=text) | ToolInputDelta(json=text) | ToolProgress(text=text):
            return max(len(text), 1)
        case _:
            return 0
