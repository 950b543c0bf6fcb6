"""What was pinned in the compactions of a recording, one after the other."""

from collections.abc import Sequence

from panpan.capabilities.cassettes.taped_pins import taped_pins
from panpan.capabilities.compaction.stand_ins import NOTICE, SUMMARY
from panpan.types.compaction import Compaction, CompactionTrigger
from panpan.types.messages import SystemReminder


def compaction(*added: SystemReminder, trigger: CompactionTrigger = "auto") -> Compaction:
    return Compaction(trigger, "u", 10, 5, added=added)


def reminder(cause: str, text: str = "") -> SystemReminder:
    return SystemReminder(text=text, cause=cause)


async def said(compactions: Sequence[Compaction], times: int) -> list[list[str | None]]:
    pins = taped_pins(compactions)
    asked = [[await pin() for pin in pins] for _ in range(times)]
    return [[None if one is None else one.text for one in answers] for answers in asked]


async def test_each_is_told_when_the_services_were_asked() -> None:
    first = (reminder(NOTICE), reminder("plan", "paint"), reminder(SUMMARY))
    second = (reminder(NOTICE), reminder("plan", "paint it"), reminder("todos", "buy paint"))
    output_alone = compaction(*first)
    undo = compaction(*first, trigger="undo")

    told = await said([compaction(*first), output_alone, compaction(*second), undo, compaction(reminder(NOTICE))], 4)

    assert told == [["paint", None], ["paint it", "buy paint"], [None, None], [None, None]]


async def test_where_nothing_was_pinned_there_are_none() -> None:
    assert taped_pins([]) == []
    assert taped_pins([compaction(reminder(NOTICE), reminder(SUMMARY))]) == []
