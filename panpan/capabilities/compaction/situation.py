"""A conversation that is to become shorter: what is sent of it now, and where it may be cut."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from panpan.capabilities.compaction.blocks import newest_prompt, start_of_recent
from panpan.capabilities.compaction.limits import Limits
from panpan.capabilities.compaction.size import Size
from panpan.capabilities.compaction.stand_ins import summary_told_by
from panpan.core.conversation import Conversation
from panpan.core.tool import Tool
from panpan.session.token_estimate import BYTES_PER_TOKEN
from panpan.types.compaction import Compaction, CompactionTrigger
from panpan.types.messages import Message, ToolResultMessage


class Situation:
    """What a compaction starts from.

    Args:
        conversation: As it is now, with at least one message and no open call.
        limits: What the next request may have.
        trigger: Why it shall become shorter.
        tools: Those of the session.
    """

    def __init__(
        self, conversation: Conversation, limits: Limits, trigger: CompactionTrigger, tools: Iterable[Tool[Any]] = ()
    ) -> None:
        self.messages: Sequence[Message] = tuple(conversation.messages)
        self.size = Size(conversation)
        self.limits = limits
        self.trigger = trigger
        tools, told = list(tools), {tool.name for tool in conversation.tools}
        self.history_tool = next((tool.name for tool in tools if tool.shows_history and tool.name in told), "")
        """Name of the tool with which the model can read what it is not sent; empty: it has none."""
        self.answering = {tool.name for tool in tools if tool.returns_users_words}
        """Names of the tools whose results are the user's answers."""
        self._before = conversation.compactions[-1] if conversation.compactions else None

    @property
    def room_tokens(self) -> int:
        """What messages may have."""
        return self.limits.room_tokens(self.size.fixed_tokens)

    def chars(self, share: float) -> int:
        """Return how many characters fill a share of the room."""
        return round(self.room_tokens * share / self.size.factor * BYTES_PER_TOKEN)

    @cached_property
    def present(self) -> Compaction:
        """A compaction that changes nothing."""
        newest = next(message for message in reversed(self.messages) if not isinstance(message, ToolResultMessage))
        before = self._before
        return Compaction(
            trigger=self.trigger,
            up_to=newest.uuid,
            tokens_before=self.size.whole,
            tokens_after=self.size.whole,
            pinned=before.pinned if before is not None else (),
            added=before.added if before is not None else (),
            kept_from=before.kept_from if before is not None else None,
            notes=before.notes if before is not None else {},
        )

    def is_present(self, compaction: Compaction) -> bool:
        """Return whether a compaction changes nothing, however the estimates of its size differ."""
        return _content(compaction) == _content(self.present)

    def start_of(self, compaction: Compaction) -> int:
        """Return the index of the oldest message that a compaction keeps."""
        kept_from = compaction.kept_from
        return next((index for index, message in enumerate(self.messages) if message.uuid == kept_from), 0)

    @cached_property
    def start(self) -> int:
        """Index of the oldest message that is sent as it is, or with a note."""
        return self.start_of(self.present)

    @cached_property
    def recent(self) -> int:
        """Index of the oldest of the newest messages, which stay in any case."""
        most = float(self.limits.recent_tokens)
        if self.trigger == "manual":  # most of what is there should go, however little it is
            most = min(most, self.size.of(self.messages[self.start :]) / 4)
        return start_of_recent(self.messages, self.start, most, self.size.of_one)

    @property
    def leaving(self) -> Sequence[Message]:
        """What is sent as it is now, and does not have to stay."""
        return self.messages[self.start : self.recent]

    @property
    def to_summarise(self) -> Sequence[Message]:
        """The same, behind the prompt of the turn that goes on, should that be older."""
        prompt = newest_prompt(self.messages)
        asked = [] if prompt is None or prompt >= self.start else [self.messages[prompt]]
        return [*asked, *self.leaving]

    @property
    def earlier_summary(self) -> str:
        """The summary that is sent now; empty where there is none."""
        return next(filter(None, map(summary_told_by, self.present.added)), "")


def _content(compaction: Compaction) -> tuple[object, ...]:
    return compaction.pinned, compaction.added, compaction.kept_from, dict(compaction.notes)
