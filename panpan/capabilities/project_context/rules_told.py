"""Which memory files the model was told of, read from the reminders that told it."""

import re
from collections.abc import Iterable, Sequence

from panpan.types.dataclass import dataclass
from panpan.types.messages import Message, SystemReminder
from panpan.types.reminder_causes import PROJECT_CONTEXT

_CAUSE_OF_DEEPER = "memory:"  # see `nested_memory`
# text of the files cannot forge these tags, see `our_tags`
_RULES = re.compile(
    r'<rules file="(?P<file>[^\n]*?)"(?: imported-by="(?P<by>[^\n]*?)")?>\n(?P<text>.*?)\n</rules>', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class ToldRules:
    """One memory file, as the model was told of it."""

    path: str
    """Printable."""
    imported_by: str
    """The file that brought it in; empty where none did."""
    chars: int


def rules_told(messages: Iterable[Message]) -> Sequence[ToldRules]:
    """Return the memory files in the reminders of a conversation, in the order in which they were told."""
    return [
        ToldRules(found["file"], found["by"] or "", len(found["text"]))
        for message in messages
        if isinstance(message, SystemReminder) and _is_about_rules(message.cause)
        for found in _RULES.finditer(message.text)
    ]


def _is_about_rules(cause: str) -> bool:
    return cause == PROJECT_CONTEXT or cause.startswith(_CAUSE_OF_DEEPER)
