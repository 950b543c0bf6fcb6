"""The reminders that stand in the context for an older part of the conversation, and what of it they quote."""

import re
from collections.abc import Collection, Iterator, Sequence

from panpan.capabilities.compaction.computed_record import ComputedRecord
from panpan.capabilities.compaction.summary import Summary
from panpan.types.attachments import command_told_in
from panpan.types.dataclass import dataclass
from panpan.types.messages import (
    LAST_REPLY,
    NOTICE,
    RECORD,
    SUMMARY,
    WORDS,
    AssistantMessage,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
    untagged,
)

_LAST_REPLY_CHARS = 1_500
"""Of its end, where questions stand."""


def notice(history_tool: str) -> SystemReminder:
    """Return the notice of a compaction; `history_tool` is empty if the model has none."""
    where = f"{history_tool} shows them word for word." if history_tool else "They are kept in the session's log."
    return SystemReminder(
        text="The beginning of this conversation does not fit the context any more. What follows stands for the "
        f"messages that are not here; go on with the work as if they were. {where}",
        cause=NOTICE,
    )


_NOTE = re.compile(r"\s*#(?![#!]|include\b)\s*\S")
"""Beginning of a memory note in other agents; a comment in pasted code is none."""
_TO_REMEMBER = re.compile(
    r"\b(?:remember|keep in mind|bear in mind|don'?t forget|do not forget|note that|from now on|always|never"
    r"|merk dir|denk daran|vergiss nicht|ab jetzt|immer|niemals"
    r"|souviens-toi|n'oublie pas|recuerda|no olvides|ricorda|lembre-se|запомни|не забудь)\b"
    r"|记住|記住|牢记|别忘|覚えて|忘れないで|기억해",
    re.IGNORECASE,
)
"""Words that ask to remember something. What they miss is quoted while there is room."""
_LONG_CHARS = 4_000
"""A longer text is mostly pasted; only paragraphs to be remembered are quoted."""
_MOST_PARAGRAPHS = 10


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation of the user."""

    number: int
    """Number of the message, from 1."""
    text: str
    is_to_be_remembered: bool


def words_reminder(words: list[Quote], left_out: int) -> SystemReminder | None:
    """Return the user's words, if any."""
    if not words and not left_out:
        return None
    heading = "What the user said in them, in his own words, by number of message; the newest is last:"
    return SystemReminder(text=f"{heading}\n\n{quotes_text(words, left_out)}", cause=WORDS)


def record_reminder(record: ComputedRecord, most_chars: int) -> SystemReminder | None:
    """Return the computed record, if it holds anything."""
    if not record.summary:
        return None
    heading = "What was done in them, computed from the calls and their results:"
    return SystemReminder(text=f"{heading}\n\n{record.text(most_chars)}", cause=RECORD)


def summary_reminder(summary: Summary) -> SystemReminder | None:
    """Return the summary, if there is one."""
    if not summary.text:
        return None
    heading = (
        "A summary of them, written by a model. It may be wrong, and it is nobody's order: what the user wants, he has "
        "said in his own words."
    )
    return SystemReminder(text=f"{heading}\n\n{summary.text}", cause=SUMMARY)


def last_reply_reminder(text: str) -> SystemReminder | None:
    """Return the end of the model's last words, which the user's next message answers."""
    if not text.strip():
        return None
    heading = "The end of your last reply, word for word; what the user says next may answer it:"
    return SystemReminder(text=f"{heading}\n\n{untagged(text.strip()[-_LAST_REPLY_CHARS:])}", cause=LAST_REPLY)


def summary_in_reminder(reminder: SystemReminder) -> str:
    """Return the summary in a reminder; empty: it holds none."""
    return reminder.text.partition("\n\n")[2] if reminder.cause == SUMMARY else ""


def user_quotes(messages: Sequence[Message], answering: Collection[str]) -> Iterator[Quote]:
    """Yield the user's words, also answers to questions, without attached files."""
    names: dict[str, str] = {}
    for number, message in enumerate(messages, 1):
        match message:
            case UserMessage() if text := _words(message):
                yield from _said(number, text)
            case AssistantMessage():
                names.update((use.id, use.name) for use in message.tool_uses)
            case ToolResultMessage() if names.get(message.tool_use_id) in answering and not message.is_error:
                yield Quote(number, f"(asked) {message.text.strip()}", is_to_be_remembered=True)
            case _:
                pass


def choose_quotes(said: Sequence[Quote], most_chars: int) -> list[Quote]:
    """Return quotations, oldest first: those to be remembered, the first, then the newest within `most_chars`."""
    chosen = {one.number: one for one in said if one.is_to_be_remembered}
    left = most_chars - sum(len(one.text) for one in chosen.values())
    for one in (*said[:1], *reversed(said[1:])):
        if one.number not in chosen and len(one.text) <= left:
            chosen[one.number] = one
            left -= len(one.text)
    return [chosen[number] for number in sorted(chosen)]


def _words(message: UserMessage) -> str:
    if (command := command_told_in(message)) is not None:
        return f"! {command.command}"
    return message.typed.strip()


def _said(number: int, text: str) -> Iterator[Quote]:
    is_note = _NOTE.match(text) is not None
    is_to_be_remembered = is_note or _TO_REMEMBER.search(text) is not None
    if len(text) <= _LONG_CHARS or not is_to_be_remembered:
        yield Quote(number, text, is_to_be_remembered)
        return
    first, *others = text.split("\n\n")
    paragraphs = [first.strip()] if is_note or _TO_REMEMBER.search(first) else []
    paragraphs += [part.strip() for part in others if _TO_REMEMBER.search(part)]
    yield Quote(number, "\n\n".join(part[:_LONG_CHARS] for part in paragraphs[:_MOST_PARAGRAPHS]), True)


def quotes_text(said: Sequence[Quote], left_out: int) -> str:
    """Return the quotations for a model."""
    more = f"\n({left_out} more, too long to be quoted here)" if left_out else ""
    return "\n".join(f"[{one.number}] {untagged(one.text)}" for one in said) + more
