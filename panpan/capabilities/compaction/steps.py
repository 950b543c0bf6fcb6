"""The steps of a compaction: what gives way to what, until the result is small enough; and how one is taken back."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from panpan.capabilities.compaction.auto_compaction import Limits
from panpan.capabilities.compaction.computed_record import computed_record
from panpan.capabilities.compaction.summary import (
    Summary,
    choose_quotes,
    last_reply_reminder,
    record_reminder,
    summary_notice,
    summary_reminder,
    user_quotes,
    words_reminder,
)
from panpan.capabilities.compaction.window import Window, newest_prompt
from panpan.core.conversation import Conversation, apply_compaction
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.messages import (
    MEMORY,
    PLAN_MODE_OFF,
    PLAN_MODE_ON,
    PROJECT_CONTEXT,
    AssistantMessage,
    Compaction,
    CompactionReport,
    Message,
    SystemReminder,
    ToolResultMessage,
)

_ENOUGH = 0.7
"""Share of the room that may be filled after the first step; more would soon be full again."""
_FULL = 0.9
"""Share of the room that may be filled in the end."""
_WORDS_SHARE, _RECORD_SHARE = 0.12, 0.12
"""Shares of the room."""


def drop_old_output(window: Window) -> Compaction | None:
    """Return the first step, in which old output leaves; None: that is not enough."""
    notes = output_notes(window.leaving, window.history_tool, window.staying)
    if notes.keys() <= window.present.notes.keys():
        return None
    compaction = _measured(window, replace(window.present, notes={**window.present.notes, **notes}))
    is_enough = compaction.tokens_after - window.size.fixed_tokens <= window.room_tokens * _ENOUGH
    return compaction if is_enough else None


def replace_older(window: Window, summary: Summary, pins: Sequence[SystemReminder]) -> Compaction:
    """Return the second and third step: a record, the user's words and the summary replace older messages."""
    older, kept, notes = window.messages[: window.recent], window.messages[window.recent :], window.present.notes
    pinned = pinned_reminders(older)
    said = list(user_quotes(older, window.answering))
    prompt = newest_prompt(window.messages)
    if prompt is not None and prompt < window.recent:  # its turn is still running
        pinned = [window.messages[prompt].uuid, *pinned]
        said = [one for one in said if one.number != prompt + 1]
    words = choose_quotes(said, window.chars(_WORDS_SHARE))
    record = computed_record(older)
    reminders = (
        summary_notice(window.history_tool),
        words_reminder(words, len(said) - len(words)),
        *pins,
        record_reminder(record, window.chars(_RECORD_SHARE)),
        summary_reminder(summary),
        last_reply_reminder(_unanswered_reply(older, kept)),
    )
    gone = _count_of_gone(older, pinned)
    compaction = replace(
        window.present,
        pinned=tuple(pinned),
        added=tuple(reminder for reminder in reminders if reminder is not None),
        kept_from=kept[0].uuid,
        notes={one.uuid: notes[one.uuid] for one in kept if one.uuid in notes},
        reply=summary.reply,
        report=CompactionReport(
            quoted=len(words),
            computed=record.summary,
            summarised=gone if summary.text else 0,
            dropped=0 if summary.text else gone,
            problem=summary.problem,
        ),
    )
    return drop_recent_output(window, compaction)


def drop_recent_output(window: Window, compaction: Compaction) -> Compaction:
    """Drop the oldest output of the newest messages as far as is needed."""
    compaction = _measured(window, compaction)
    excess = compaction.tokens_after - window.size.fixed_tokens - window.room_tokens * _FULL
    kept = window.messages[window.start_of(compaction) :]
    notes = output_notes(kept, window.history_tool, window.staying)
    leaving: dict[str, str] = {}
    for message in kept:
        if excess <= 0:
            break
        if message.uuid in notes and message.uuid not in compaction.notes:
            leaving[message.uuid] = note = notes[message.uuid]
            excess -= window.size.of_one(message) - window.size.of_text(note)
    return _measured(window, replace(compaction, notes={**compaction.notes, **leaving})) if leaving else compaction


def leaving_tokens(window: Window) -> float:
    """Return the size of the older messages that need not stay."""
    pinned = set(pinned_reminders(window.leaving))
    return window.size.of(message for message in window.leaving if message.uuid not in pinned)


def undo_newest(conversation: Conversation) -> Compaction | None:
    """Return a compaction that takes the newest one back; None: there is none to take back."""
    in_force: list[Compaction] = []
    for compaction in conversation.compactions:
        if compaction.trigger != "undo":
            in_force.append(compaction)
        elif in_force:
            in_force.pop()
    if not in_force or not conversation.messages:
        return None
    before = in_force[-2] if len(in_force) > 1 else None
    window = Window(conversation, Limits(0, 0), "undo")
    undo = replace(
        window.present,
        pinned=before.pinned if before is not None else (),
        added=before.added if before is not None else (),
        kept_from=before.kept_from if before is not None else None,
        notes=before.notes if before is not None else {},
    )
    sent = apply_compaction(window.messages, undo)
    assert sent is not None, "it was made for these messages"
    older = len(undo.pinned) + len(undo.added)
    report = CompactionReport(kept=len(sent) - older, pinned=len(undo.pinned), outputs=len(undo.notes))
    return replace(undo, tokens_after=window.size.of_request(sent), report=report)


LEAST_CHARS = 600
"""A shorter output stays."""
_SHOWN_CHARS = 60
_AGAIN = {"Read": "file_path", "Grep": "pattern", "Glob": "pattern", "LS": "path"}
"""Tools that show the present state when called again, with the argument that names it."""


def output_notes(messages: Sequence[Message], history_tool: str, staying: Collection[str]) -> dict[str, str]:
    """Return a note for each long output of whole blocks, by message id; that of the tools in `staying` stays."""
    uses = {use.id: use for message in messages if isinstance(message, AssistantMessage) for use in message.tool_uses}
    return {
        message.uuid: _note(message, uses.get(message.tool_use_id), history_tool)
        for message in messages
        if isinstance(message, ToolResultMessage)
        and _is_long(message)
        and not ((use := uses.get(message.tool_use_id)) is not None and use.name in staying)
    }


def _is_long(message: ToolResultMessage) -> bool:
    has_others = any(not isinstance(block, TextBlock) for block in message.result.content)
    return has_others or len(message.text) > LEAST_CHARS


def _note(message: ToolResultMessage, use: ToolUseBlock | None, history_tool: str) -> str:
    ways = []
    name = use.name if use is not None else "tool"
    argument = use.input.get(_AGAIN[name]) if use is not None and name in _AGAIN else None
    if isinstance(argument, str):
        shown = argument if len(argument) <= _SHOWN_CHARS else f"{argument[:_SHOWN_CHARS]}…"
        ways.append(f"as it is now: {name} {shown}")
    elif not history_tool:
        ways.append("make the call again if it changes nothing")
    if history_tool:
        ways.append(f"as it was: {history_tool} with call {message.tool_use_id}")
    size = f"{len(message.text):,} characters of output" if message.text else "the output"
    return f"[{size} left out to save room. If you need it again: {'; '.join(ways)}]"


def pinned_reminders(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the reminders that stay: project context, memory files, and that plan mode is on."""
    reminders = [message for message in messages if isinstance(message, SystemReminder)]
    pinned = [one.uuid for one in reminders if one.cause == PROJECT_CONTEXT or one.cause.startswith(MEMORY)]
    plan_mode: str | None = None
    for one in reminders:
        if one.cause == PLAN_MODE_OFF:
            plan_mode = None
        elif one.cause == PLAN_MODE_ON:  # the first notice explains plan mode, later ones only say that it is on
            plan_mode = plan_mode or one.uuid
    return pinned if plan_mode is None else [*pinned, plan_mode]


def _measured(window: Window, compaction: Compaction) -> Compaction:
    """Return the compaction with its size and report."""
    sent = apply_compaction(window.messages, compaction)
    assert sent is not None, "it was made for these messages"
    older = len(compaction.added) + len(compaction.pinned)
    report = replace(
        compaction.report,
        kept=len(sent) - older,
        pinned=len(compaction.pinned),
        outputs=len(compaction.notes),
    )
    return replace(compaction, tokens_after=window.size.of_request(sent), report=report)


def _unanswered_reply(older: Sequence[Message], kept: Sequence[Message]) -> str:
    """Return the model's last words, if they are older and the user has just spoken."""
    if any(isinstance(message, AssistantMessage) for message in kept):
        return ""
    return next((message.text for message in reversed(older) if isinstance(message, AssistantMessage)), "")


def _count_of_gone(older: Sequence[Message], pinned: Sequence[str]) -> int:
    return sum(not isinstance(message, SystemReminder) and message.uuid not in pinned for message in older)
