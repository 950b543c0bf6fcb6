"""A compaction: what a model is sent in the place of the beginning of a conversation, from a certain message on.

Nothing of the conversation is lost by it. It only says what requests hold from now on, and a later one says it anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, get_args

from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, SystemReminder, new_id

CompactionTrigger: TypeAlias = Literal["auto", "overflow", "manual", "undo"]
"""Why: the window was nearly full, the provider refused a request as too long, the user wanted it, or he wanted what
was there before."""

COMPACTION_TRIGGERS: Sequence[CompactionTrigger] = get_args(CompactionTrigger)


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What became of what was said, for people."""

    kept: int = 0
    """Newest messages that stay as they are, but for `outputs`."""
    pinned: int = 0
    """Older messages that stay as they are."""
    quoted: int = 0
    """Older messages of the user's that are quoted in his own words."""
    computed: str = ""
    """What panpan has computed of the rest, such as "4 files read"; empty where it has not."""
    summarised: int = 0
    """Messages for which a summary of the model's stands."""
    dropped: int = 0
    """Messages for which nothing stands but what was computed and quoted."""
    outputs: int = 0
    """Outputs of tools among the kept messages that a note stands for."""
    problem: str = ""
    """Why there is no summary, where there should be one; half a sentence."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What requests hold from now on: pinned reminders, `added`, pinned prompts, all messages from `kept_from` on."""

    trigger: CompactionTrigger
    up_to: str
    """Id of the newest message at that time, results left out; a conversation without it has no such compaction."""
    tokens_before: int
    """Of the request that it made shorter, as far as it was known."""
    tokens_after: int
    """Of the request with the same messages from then on; an estimate."""
    pinned: tuple[str, ...] = ()
    """Ids of older reminders and prompts that stay as they are."""
    added: tuple[SystemReminder, ...] = ()
    """What stands for the other older messages."""
    kept_from: str | None = None
    """Id of the oldest message that is kept with all after it; None: the first of the conversation."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What stands in the place of the output of tools, by the id of the kept message that has it."""
    report: CompactionReport = CompactionReport()
    reply: AssistantMessage | None = None
    """The model's reply to the wish for a summary, for what it cost; None where it was not asked."""
    hint: str = ""
    """What the user wanted the summary to heed."""
    uuid: str = field(default_factory=new_id)
