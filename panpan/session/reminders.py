"""The reminders of a session: collected from their sources before each request, each told once, and not too many.

They are records behind the newest message, so that what was sent before stays as it is. What the conversation holds
counts, so that a resumed session tells nothing twice, either.
"""

import logging
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import islice
from typing import get_args

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.types.events import Output
from panpan.types.messages import AssistantMessage, Message, ReminderPriority, SystemReminder


class ReminderSource:
    """One thing that is watched; each point does nothing unless it is overridden.

    The rule: `reminders` may be asked any number of times and returns what holds now. What the conversation has is not
    told again, since nothing is told twice for the same cause: so a cause names the occasion, such as
    `file:changed:3f2a`, and not only its kind.
    """

    async def turn_started(self, conversation: Conversation) -> None:
        """The user has said something."""

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        """A call has run: a file was read or edited, say."""

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        """Return what the model should know before it is asked."""
        return ()

    async def turn_ended(self, conversation: Conversation) -> None:
        """The turn is over, in whatever way."""

    async def history_replaced(self, conversation: Conversation) -> None:
        """Note that earlier messages were replaced or removed."""


_ORDER: Sequence[ReminderPriority] = get_args(ReminderPriority)
"""The most important first."""
MOST_AT_ONCE = 20
"""Most new reminders of one source before one request."""
_MOST_LOOKED_AT = 10_000
"""Most reminders of one source that are looked at; those that still hold count, too."""
MOST_CHARS = 100_000
"""Longest reminder; the rest of a longer one is cut."""

log = logging.getLogger(__name__)


class Reminders(Hook):
    """Tells the model what its sources say, in their order, and `max_per_session` that are not a must."""

    is_for_small_windows = False

    def __init__(self, sources: Iterable[ReminderSource], max_per_session: int) -> None:
        self._sources = list(sources)
        self._max_per_session = max_per_session
        self._told = _Told()

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        for source in self._sources:
            await _heard(source, source.turn_started(conversation))
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        """Return what is due: all that is a must, and of the rest, the more important first, what there is room for."""
        messages = round_.conversation.messages
        if _is_cut(messages):
            return ()
        self._told.follow(messages)
        due: dict[str, SystemReminder] = {}
        for source in self._sources:
            new = [reminder for reminder in await _asked(source, round_) if reminder.cause not in self._told.causes]
            for reminder in _important_first(new)[:MOST_AT_ONCE]:
                due.setdefault(reminder.cause, _bounded(reminder))
        return list(self._chosen(due.values()))

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        for source in self._sources:
            await _heard(source, source.after_tool(call, output))
        return output

    async def turn_ended(self, conversation: Conversation) -> None:
        for source in self._sources:
            await _heard(source, source.turn_ended(conversation))

    async def history_replaced(self, conversation: Conversation) -> None:
        self._told = _Told()
        for source in self._sources:
            await _heard(source, source.history_replaced(conversation))

    def _chosen(self, due: Iterable[SystemReminder]) -> Iterator[SystemReminder]:
        room = self._max_per_session - self._told.bounded
        for reminder in _important_first(due):
            if reminder.priority == "must":
                yield reminder
            elif room > (self._max_per_session // 2 if reminder.priority == "low" else 0):
                room -= 1  # low priority gets only the first half, so that important advice finds room
                yield reminder


class _Told:
    """Reminders that the conversation contains; looks only at new messages."""

    def __init__(self) -> None:
        self.causes: set[str] = set()
        self.bounded = 0
        """Number of reminders that were not a must."""
        self._seen = 0

    def follow(self, messages: Sequence[Message]) -> None:
        for message in messages[self._seen :]:
            if isinstance(message, SystemReminder):
                self.causes.add(message.cause)
                self.bounded += message.priority != "must"
        self._seen = len(messages)


async def _heard(source: ReminderSource, hearing: Awaitable[None]) -> None:
    """Let a source hear of something; one that fails costs nothing else, since the turn does not depend on it."""
    try:
        await hearing
    except Exception:
        log.exception("the source of reminders %s failed", type(source).__name__)


async def _asked(source: ReminderSource, round_: Round) -> Sequence[SystemReminder]:
    """Return what a source says; one that fails says nothing."""
    try:
        said = list(islice(await source.reminders(round_), _MOST_LOOKED_AT))
        if not all(isinstance(reminder, SystemReminder) for reminder in said):
            raise TypeError("it returns other things than reminders")
        return said
    except Exception:
        log.exception("the source of reminders %s failed", type(source).__name__)
        return ()


def _is_cut(messages: Sequence[Message]) -> bool:
    """Return True if the model goes on in mid-sentence, where nothing should come between."""
    newest = next((message for message in reversed(messages) if not isinstance(message, SystemReminder)), None)
    return isinstance(newest, AssistantMessage) and newest.is_to_be_continued


def _important_first(reminders: Iterable[SystemReminder]) -> list[SystemReminder]:
    return sorted(reminders, key=lambda reminder: _ORDER.index(reminder.priority))


def _bounded(reminder: SystemReminder) -> SystemReminder:
    if len(reminder.text) <= MOST_CHARS:
        return reminder
    return reminder.model_copy(update={"text": f"{reminder.text[:MOST_CHARS]}\n…"})
