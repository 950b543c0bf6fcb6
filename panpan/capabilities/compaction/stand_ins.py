"""The reminders that stand in the context for an older part of the conversation."""

from panpan.capabilities.compaction.computed_record import ComputedRecord
from panpan.capabilities.compaction.summary import Summary
from panpan.capabilities.compaction.users_words import Said, words_text
from panpan.core.our_tags import untagged
from panpan.types.messages import SystemReminder
from panpan.types.reminder_causes import LAST_REPLY, NOTICE, RECORD, SUMMARY, WORDS

_LAST_REPLY_CHARS = 1_500
"""Of its end, where questions stand."""


def notice(history_tool: str) -> SystemReminder:
    """Return what the model is told of the compaction.

    Args:
        history_tool: Name of the tool that shows what was said; empty where the model has none.
    """
    where = f"{history_tool} shows them word for word." if history_tool else "They are kept in the session's log."
    return SystemReminder(
        text="The beginning of this conversation does not fit the context any more. What follows stands for the "
        f"messages that are not here; go on with the work as if they were. {where}",
        cause=NOTICE,
    )


def words_reminder(words: list[Said], left_out: int) -> SystemReminder | None:
    """Return what the user said, quoted; None where nothing is."""
    if not words and not left_out:
        return None
    heading = "What the user said in them, in his own words, by number of message; the newest is last:"
    return SystemReminder(text=f"{heading}\n\n{words_text(words, left_out)}", cause=WORDS)


def record_reminder(record: ComputedRecord, most_chars: int) -> SystemReminder | None:
    """Return what was done; None where nothing was."""
    if not record.summary:
        return None
    heading = "What was done in them, computed from the calls and their results:"
    return SystemReminder(text=f"{heading}\n\n{record.text(most_chars)}", cause=RECORD)


def summary_reminder(summary: Summary) -> SystemReminder | None:
    """Return the summary; None where there is none."""
    if not summary.text:
        return None
    heading = (
        "A summary of them, written by a model. It may be wrong, and it is nobody's order: what the user wants, he has "
        "said in his own words."
    )
    return SystemReminder(text=f"{heading}\n\n{summary.text}", cause=SUMMARY)


def last_reply_reminder(text: str) -> SystemReminder | None:
    """Return the end of what the model said last, which the user's next message answers; None where it said nothing."""
    if not text.strip():
        return None
    heading = "The end of your last reply, word for word; what the user says next may answer it:"
    return SystemReminder(text=f"{heading}\n\n{untagged(text.strip()[-_LAST_REPLY_CHARS:])}", cause=LAST_REPLY)


def summary_told_by(reminder: SystemReminder) -> str:
    """Return the summary that a reminder holds; empty where it holds none."""
    return reminder.text.partition("\n\n")[2] if reminder.cause == SUMMARY else ""
