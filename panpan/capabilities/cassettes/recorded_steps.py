"""What was done in a recorded session, one step after the other: what a replay does again."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from panpan.capabilities.cassettes.recorded_reply import RecordedReply
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort
from panpan.types.messages import SystemReminder, UserMessage


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request, and what came of it."""

    number: int
    canonical: Mapping[str, Any]
    additions: tuple[UserMessage | SystemReminder, ...]
    """What panpan put into the conversation just before it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How the model was asked to answer."""
    reply: RecordedReply = RecordedReply(())
    """Without events where the recording was cut off there."""


@dataclass(slots=True)
class RecordedTurn:
    """The user said something, or there was something for the model to know, and it worked on that."""

    prompt: UserMessage | None
    """None: the model was woken, without a message of the user."""
    requests: list[RecordedRequest] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    """What the provider said when it was asked how many tokens a request has."""
    is_interrupted: bool = False
    is_whole: bool = False
    """Whether its end was recorded."""


@dataclass(slots=True)
class RecordedCompaction:
    """The user made the conversation shorter, or took that back."""

    is_undo: bool
    hint: str = ""
    """What the summary had to heed."""
    requests: list[RecordedRequest] = field(default_factory=list)
    """Those for the summary."""
    counts: list[int | None] = field(default_factory=list)
    is_interrupted: bool = False
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Said:
    """The user said or did something without asking for an answer."""

    message: UserMessage


@dataclass(frozen=True, slots=True)
class Rewound:
    """The user took back what was said since."""

    kept: int
    """How many messages were left."""


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """The user chose another model."""

    profile: str
    """How much of panpan it was given."""
    window_tokens: int | None
    """Of its context window; None where that was not known."""


@dataclass(slots=True)
class AnswersChosen:
    """The user chose anew how the model shall answer."""

    effort: Effort | None
    thinks: bool | None = None
    """Whether it was asked to think first; None: nothing was asked since."""


RecordedStep: TypeAlias = RecordedTurn | RecordedCompaction | Said | Rewound | ModelChanged | AnswersChosen
