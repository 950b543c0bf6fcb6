"""Reminders that stayed in a compaction, as they were recorded: the files and the state that they told of are gone."""

from collections.abc import Iterable, Iterator, Sequence

from panpan.capabilities.compaction.stand_ins import LAST_REPLY, NOTICE, RECORD, SUMMARY, WORDS
from panpan.types.compaction import Compaction
from panpan.types.messages import SystemReminder

_OF_COMPACTION = frozenset({NOTICE, WORDS, RECORD, SUMMARY, LAST_REPLY})


def told_pins(compactions: Iterable[Compaction]) -> Iterator[Sequence[SystemReminder]]:
    """Yield the reminders that were pinned, compaction for compaction.

    They are not where output alone leaves, or a compaction is taken back: then older reminders stay, or come back.
    """
    seen: set[str] = set()
    for compaction in compactions:
        new = [reminder for reminder in compaction.added if reminder.uuid not in seen]
        seen.update(reminder.uuid for reminder in new)
        if compaction.trigger != "undo" and any(reminder.cause == NOTICE for reminder in new):
            yield [reminder for reminder in new if reminder.cause not in _OF_COMPACTION]
