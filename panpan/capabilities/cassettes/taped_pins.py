"""What services wanted to stay in a compaction, as it was recorded: their files and their state are not there now."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from panpan.capabilities.compaction.compactor import Pin
from panpan.capabilities.compaction.stand_ins import LAST_REPLY, NOTICE, RECORD, SUMMARY, WORDS
from panpan.types.compaction import Compaction
from panpan.types.messages import SystemReminder

_OF_COMPACTION = frozenset({NOTICE, WORDS, RECORD, SUMMARY, LAST_REPLY})


def taped_pins(compactions: Iterable[Compaction]) -> Sequence[Pin]:
    """Return pins that say the same again, compaction for compaction.

    Args:
        compactions: Those of the recording, in their order.
    """
    told = list(_told(compactions))
    most = max(map(len, told), default=0)
    return [partial(_next, [one[place] if place < len(one) else None for one in told]) for place in range(most)]


def _told(compactions: Iterable[Compaction]) -> Iterator[Sequence[SystemReminder]]:
    """Yield what the services said each time that they were asked.

    They are not where output alone leaves, or a compaction is taken back: then older reminders stay, or come back.
    """
    seen: set[str] = set()
    for compaction in compactions:
        new = [reminder for reminder in compaction.added if reminder.uuid not in seen]
        seen.update(reminder.uuid for reminder in new)
        if compaction.trigger != "undo" and any(reminder.cause == NOTICE for reminder in new):
            yield [reminder for reminder in new if reminder.cause not in _OF_COMPACTION]


async def _next(reminders: list[SystemReminder | None]) -> SystemReminder | None:
    return reminders.pop(0) if reminders else None
