"""The steps of a compaction: what stands for what, and whether the result is small enough."""

from collections.abc import Sequence
from dataclasses import replace

from panpan.capabilities.compaction.blocks import newest_prompt
from panpan.capabilities.compaction.computed_record import computed_record
from panpan.capabilities.compaction.pinned import pinned_reminders
from panpan.capabilities.compaction.situation import Situation
from panpan.capabilities.compaction.stale_output import notes_for, output_notes
from panpan.capabilities.compaction.stand_ins import (
    last_reply_reminder,
    notice,
    record_reminder,
    summary_reminder,
    words_reminder,
)
from panpan.capabilities.compaction.summary import Summary
from panpan.capabilities.compaction.users_words import quoted, said_by_user
from panpan.core.conversation import compacted
from panpan.types.compaction import Compaction, CompactionReport
from panpan.types.messages import AssistantMessage, Message, SystemReminder

_ENOUGH = 0.7
"""What of the room may be filled after the first step; more would soon be full again."""
_FULL = 0.9
"""What of the room may be filled in the end."""
_WORDS_SHARE, _RECORD_SHARE = 0.12, 0.12
"""Of the room: for the user's words, and for the computed record."""


def without_old_output(situation: Situation) -> Compaction | None:
    """Return the first step, in which old output of tools leaves; None where that is not enough."""
    notes = output_notes(situation.leaving, situation.history_tool, situation.answering)
    if notes.keys() <= situation.present.notes.keys():
        return None
    compaction = _measured(situation, replace(situation.present, notes={**situation.present.notes, **notes}))
    is_enough = compaction.tokens_after - situation.size.fixed_tokens <= situation.room_tokens * _ENOUGH
    return compaction if is_enough else None


def leaving_tokens(situation: Situation) -> float:
    """Return how much of what is older does not have to stay."""
    pinned = set(pinned_reminders(situation.leaving))
    return situation.size.of(message for message in situation.leaving if message.uuid not in pinned)


def with_record(situation: Situation, summary: Summary, pins: Sequence[SystemReminder]) -> Compaction:
    """Return the second and third step: what is computed, the user's words and the summary stand for what is older.

    Args:
        situation: What is made shorter.
        summary: What the model made of it.
        pins: What services want to stay, as it is now.
    """
    older, kept = situation.messages[: situation.recent], situation.messages[situation.recent :]
    pinned = pinned_reminders(older)
    said = list(said_by_user(older, situation.answering))
    prompt = newest_prompt(situation.messages)
    if prompt is not None and prompt < situation.recent:  # the turn that it began goes on
        pinned = [situation.messages[prompt].uuid, *pinned]
        said = [one for one in said if one.number != prompt + 1]
    words = quoted(said, situation.chars(_WORDS_SHARE))
    record = computed_record(older)
    reminders = (
        notice(situation.history_tool),
        words_reminder(words, len(said) - len(words)),
        *pins,
        record_reminder(record, situation.chars(_RECORD_SHARE)),
        summary_reminder(summary),
        last_reply_reminder(_unanswered_reply(older, kept)),
    )
    gone = _count_of_gone(older, pinned)
    compaction = replace(
        situation.present,
        pinned=tuple(pinned),
        added=tuple(reminder for reminder in reminders if reminder is not None),
        kept_from=kept[0].uuid,
        notes=notes_for(situation.present.notes, kept),
        reply=summary.reply,
        report=CompactionReport(
            quoted=len(words),
            computed=record.summary,
            summarised=gone if summary.text else 0,
            dropped=0 if summary.text else gone,
            problem=summary.problem,
        ),
    )
    return fitted(situation, compaction)


def fitted(situation: Situation, compaction: Compaction) -> Compaction:
    """Return a compaction in which as much output of the newest messages leaves as is needed, the oldest first."""
    compaction = _measured(situation, compaction)
    excess = compaction.tokens_after - situation.size.fixed_tokens - situation.room_tokens * _FULL
    kept = situation.messages[situation.start_of(compaction) :]
    notes = output_notes(kept, situation.history_tool, situation.answering)
    leaving: dict[str, str] = {}
    for message in kept:
        if excess <= 0:
            break
        if message.uuid in notes and message.uuid not in compaction.notes:
            leaving[message.uuid] = note = notes[message.uuid]
            excess -= situation.size.of_one(message) - situation.size.of_text(note)
    return _measured(situation, replace(compaction, notes={**compaction.notes, **leaving})) if leaving else compaction


def _measured(situation: Situation, compaction: Compaction) -> Compaction:
    """Return the compaction with its size, and what it keeps."""
    sent = compacted(situation.messages, compaction)
    assert sent is not None, "it was made for these messages"
    older = len(compaction.added) + len(compaction.pinned)
    report = replace(
        compaction.report,
        kept=len(sent) - older,
        pinned=len(compaction.pinned),
        outputs=len(compaction.notes),
    )
    return replace(compaction, tokens_after=situation.size.of_request(sent), report=report)


def _unanswered_reply(older: Sequence[Message], kept: Sequence[Message]) -> str:
    """Return what the model said last, where that is older, and the user has just spoken; else nothing."""
    if any(isinstance(message, AssistantMessage) for message in kept):
        return ""
    return next((message.text for message in reversed(older) if isinstance(message, AssistantMessage)), "")


def _count_of_gone(older: Sequence[Message], pinned: Sequence[str]) -> int:
    return sum(not isinstance(message, SystemReminder) and message.uuid not in pinned for message in older)
