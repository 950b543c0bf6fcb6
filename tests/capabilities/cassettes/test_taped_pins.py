"""Texts pinned in the compactions of a recording, one after the other."""

from panpan.capabilities.cassettes.replay import recorded_pins
from panpan.types.messages import NOTICE, SUMMARY, Compaction, CompactionTrigger, SystemReminder


def compaction(*added: SystemReminder, trigger: CompactionTrigger = "auto") -> Compaction:
    return Compaction(trigger, "u", 10, 5, added=added)


def reminder(cause: str, text: str = "") -> SystemReminder:
    return SystemReminder(text=text, cause=cause)


def said(*compactions: Compaction) -> list[list[str]]:
    return [[one.text for one in pinned] for pinned in recorded_pins(compactions)]


def test_pins_are_told_per_request_to_the_services() -> None:
    first = (reminder(NOTICE), reminder("plan", "paint"), reminder(SUMMARY))
    second = (reminder(NOTICE), reminder("plan", "paint it"), reminder("todos", "buy paint"))
    output_alone = compaction(*first)
    undo = compaction(*first, trigger="undo")

    told = said(compaction(*first), output_alone, compaction(*second), undo, compaction(reminder(NOTICE)))

    assert told == [["paint"], ["paint it", "buy paint"], []]


def test_pins_are_empty_if_nothing_was_pinned() -> None:
    assert said() == []
    assert said(compaction(reminder(NOTICE), reminder(SUMMARY))) == [[]]
