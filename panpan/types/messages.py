"""Messages of a session, the compaction that replaces older ones in requests, and the causes of reminders."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from panpan.types.content import (
    AssistantContent,
    Display,
    Frozen,
    TextBlock,
    TextDisplay,
    ToolResultBlock,
    ToolUseBlock,
    UserContent,
)
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late


def new_id() -> str:
    """Return a UUID of version 7 (RFC 9562, section 5.7): 48 bits of Unix milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (
        (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    )
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def unique_id(wanted: str, taken: AbstractSet[str]) -> str:
    """Return `wanted` if it is not in `taken`, else `wanted` with the next number that makes it unique.

    Some servers give the first call of every reply the id "call_0", and some give calls no id at all.
    """
    wanted = wanted or "call"
    if wanted not in taken:
        return wanted
    last, free = 1, 2
    while f"{wanted}-{free}" in taken:  # there may be thousands, so do not look at each
        last, free = free, 2 * free
    while free - last > 1:
        middle = (last + free) // 2
        last, free = (middle, free) if f"{wanted}-{middle}" in taken else (last, middle)
    return f"{wanted}-{free}"


StopReason: TypeAlias = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "refusal",
    "pause_turn",
    "model_context_window_exceeded",
    "interrupted",
    "unknown",
]
"""Reason for the end of a reply, as the Messages API names it.

"interrupted" is ours; "unknown" is for a server that gave no reason, or another one."""


class Usage(Frozen):
    """Tokens that one or more requests used. `input_tokens` does not include those of the two cache fields."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_input_tokens=self.cache_read_input_tokens + other.cache_read_input_tokens,
            cache_creation_input_tokens=self.cache_creation_input_tokens + other.cache_creation_input_tokens,
        )

    @property
    def uncached_tokens(self) -> int:
        """Tokens of the input that no cache held."""
        return self.input_tokens + self.cache_creation_input_tokens

    @property
    def context_tokens(self) -> int:
        """Tokens of the context window that the request and its reply filled."""
        return self.uncached_tokens + self.cache_read_input_tokens + self.output_tokens


ReminderPriority: TypeAlias = Literal["must", "high", "normal", "low"]
"""Priority of a reminder.

Without a `must`, such as that plan mode is on, the model cannot work correctly. The others are advice, of which a
session gets a bounded number, the highest first."""


class UserMessage(Frozen):
    """One message of the user: their words, and whatever goes along with them."""

    type: Literal["user"] = "user"
    uuid: str = Field(default_factory=new_id)
    content: tuple[UserContent, ...]
    is_verbatim: bool = Field(default=False, exclude=True)
    """True if a program wrote it, so that nothing in it is a mention or a command; not kept in the log."""

    @classmethod
    def of(cls, text: str) -> "UserMessage":
        """Return a message that says `text`."""
        return cls(content=(TextBlock(text=text),))

    @property
    def text(self) -> str:
        """All of its text, pictures and documents left out."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def typed(self) -> str:
        """The words of the user: the first text. Later ones are data: what was piped in, or files that go along."""
        if self.is_verbatim:
            return ""
        return next((block.text for block in self.content if isinstance(block, TextBlock)), "")


_REMINDER_TAG = compile_late(r"<(?=\s{0,9}/?\s{0,9}system-reminder)", re.IGNORECASE)


class SystemReminder(Frozen):
    """A message from panpan to the model beside the user's words: context, notices, changes.

    It is a record of its own and never part of the system prompt, so the prefix of the requests stays the same. On the
    wire its text is in `<system-reminder>` tags at the end of the user message that it follows.
    """

    type: Literal["system_reminder"] = "system_reminder"
    uuid: str = Field(default_factory=new_id)
    text: str
    cause: str = ""
    """Occasion of the reminder, such as "session:start"; for faces and logs, not sent."""
    priority: ReminderPriority = "must"
    """Its priority; not sent, either."""

    @property
    def category(self) -> str:
        """Subject of the reminder: the part of its cause before the colon."""
        return self.cause.partition(":")[0]

    @property
    def tagged_text(self) -> str:
        """The text as the model sees it; no text can end the tags before its own end, whoever wrote it."""
        return f"<system-reminder>\n{_REMINDER_TAG.sub('&lt;', self.text)}\n</system-reminder>"


class AssistantMessage(Frozen):
    """One whole reply of the model."""

    type: Literal["assistant"] = "assistant"
    uuid: str = Field(default_factory=new_id)
    content: tuple[AssistantContent, ...]
    model: str = ""
    stop_reason: StopReason = "end_turn"
    usage: Usage = Usage()
    cost_usd: float | None = None
    """Price of the reply in US dollars; None if the model's price is not known."""
    duration_s: float = 0.0
    """Seconds from sending the request to the last byte of the reply."""

    @property
    def text(self) -> str:
        """All of its text, thinking and calls left out."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """The tools it asks for, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolUseBlock))

    @property
    def is_to_be_continued(self) -> bool:
        """True if the next reply, if there is one, goes on where this one stops, even within a word."""
        return self.stop_reason in ("max_tokens", "pause_turn") and not self.tool_uses


class ToolResultMessage(Frozen):
    """The answer to one tool use; every tool use has exactly one."""

    type: Literal["tool_result"] = "tool_result"
    uuid: str = Field(default_factory=new_id)
    result: ToolResultBlock
    display: Display | None = None
    """The result as faces show it, in place of the text that the model reads; never sent to a model."""

    @property
    def tool_use_id(self) -> str:
        """Id of the call that it answers."""
        return self.result.tool_use_id

    @property
    def is_error(self) -> bool:
        """True if the call failed, was refused or never ran."""
        return self.result.is_error

    @property
    def text(self) -> str:
        """The text that the model reads; pictures and documents left out."""
        return self.result.text

    @property
    def text_for_people(self) -> str:
        """The text for people, shown if the result has no display or if they want to see more."""
        return self.display.text if isinstance(self.display, TextDisplay) else self.result.text_for_people


Message: TypeAlias = Annotated[
    UserMessage | SystemReminder | AssistantMessage | ToolResultMessage, Field(discriminator="type")
]
"""One entry of a conversation, kept in the session and sent to the model."""


CompactionTrigger: TypeAlias = Literal["auto", "overflow", "manual", "undo"]
"""Reason for a compaction: the window was nearly full, the provider refused a request as too long, the user asked for
it, or the user undid the one before."""

COMPACTION_TRIGGERS: Sequence[CompactionTrigger] = get_args(CompactionTrigger)


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """Numbers of messages that a compaction kept, shortened and dropped, for people."""

    kept: int = 0
    """Newest messages that stay as they are, but for `outputs`."""
    pinned: int = 0
    """Older messages that stay as they are."""
    quoted: int = 0
    """Older messages of the user that are quoted in their own words."""
    computed: str = ""
    """Record of the rest that panpan computed, such as "4 files read"; empty if there is none."""
    summarised: int = 0
    """Messages that a summary by the model replaces."""
    dropped: int = 0
    """Messages that only the computed record and the quotes replace."""
    outputs: int = 0
    """Outputs of tools in the kept messages that a note replaces."""
    problem: str = ""
    """Reason for a missing summary, as half a sentence; empty if nothing went wrong."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A shorter beginning for later requests.

    From now on they hold pinned reminders, `added`, pinned prompts, and all messages from `kept_from` on.
    """

    trigger: CompactionTrigger
    up_to: str
    """Id of the newest message at that time, results left out; a conversation without it has no such compaction."""
    tokens_before: int
    """Tokens of the request that it made shorter, as far as they were known."""
    tokens_after: int
    """Estimated tokens of the same request afterwards."""
    pinned: tuple[str, ...] = ()
    """Ids of older reminders and prompts that stay as they are."""
    added: tuple[SystemReminder, ...] = ()
    """Reminders that replace the other older messages."""
    kept_from: str | None = None
    """Id of the oldest message that is kept with all after it; None for the first of the conversation."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Texts that replace the output of tools, by the id of the kept message that has it."""
    report: CompactionReport = CompactionReport()
    reply: AssistantMessage | None = None
    """The model's reply to the request for a summary, for its cost; None if the model was not asked."""
    hint: str = ""
    """The user's instruction for the summary."""
    uuid: str = field(default_factory=new_id)


PROJECT_CONTEXT = "session:start"
"""The project context at the beginning of a session."""

MEMORY = "memory:"
"""Prefix of the causes of rules files that the model was given later; the file follows."""

PLAN_MODE_ON, PLAN_MODE_OFF = "plan_mode:on", "plan_mode:off"
"""Plan mode has begun or is still on; plan mode is over."""

NOTICE, WORDS, RECORD, SUMMARY = "compact:notice", "compact:words", "compact:record", "compact:summary"
LAST_REPLY = "compact:last-reply"
"""Replacements for the older part of a compacted conversation: the notice, the user's words, the record of the work,
a summary, and the end of the reply that the user's next message answers."""

PLAN = "compact:plan"
"""The plan, repeated after a compaction."""

_TASK = compile_late(r"task:([0-9a-f]{8})(:running)?")


def parse_task_cause(cause: str) -> tuple[str, bool] | None:
    """Return the id of the background task that a reminder is about, and True if it says that the task still runs."""
    found = _TASK.fullmatch(cause)
    return (found[1], found[2] is not None) if found else None


_OUR_TAGS = compile_late(r"<(?=\s{0,9}/?\s{0,9}(?:system-reminder|context|rules)\b)", re.IGNORECASE)


def strip_tags(text: str) -> str:
    """Return `text` with the tags defused that panpan itself sets around it."""
    return _OUR_TAGS.sub("&lt;", text)
