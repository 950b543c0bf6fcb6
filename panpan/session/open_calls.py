"""What the log tells of calls that have no result, since panpan ended meanwhile."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from panpan.session.record_kinds import CallStartedRecord, FileChangesRecord, session_record
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage
from panpan.types.tool import IntendedChange

_MARK = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class UnfinishedCall:
    """A call of the newest reply without a result, as the log tells it."""

    tool_use: ToolUseBlock
    is_begun: bool
    """False: it has changed nothing."""
    notes_changes: bool = False
    """Whether it changed no file but those of `changes`."""
    changes: Sequence[IntendedChange] = field(default_factory=tuple)
    process_mark: str = ""
    """By which the processes are found that it started; empty where it started none, or is another session's."""


def open_calls(messages: Sequence[Message]) -> list[ToolUseBlock]:
    """Return the calls of the newest reply that have no result.

    What follows them does not settle them: a command that the user ran himself is recorded before the next turn.
    """
    answered: set[str] = set()
    for message in reversed(messages):
        match message:
            case ToolResultMessage():
                answered.add(message.tool_use_id)
            case AssistantMessage():
                return [use for use in message.tool_uses if use.id not in answered]
            case _:
                pass
    return []


def unfinished_calls(records: Iterable[Mapping[str, Any]], open_uses: Sequence[ToolUseBlock]) -> list[UnfinishedCall]:
    """Return what the log tells of the calls that it leaves open.

    Args:
        records: The path of records that the session consists of.
        open_uses: The calls of its newest reply that have no result.
    """
    if not open_uses:
        return []
    found: dict[str, UnfinishedCall] = {}
    notes_starts = False
    for record in records:
        if record.get("type") == "assistant":
            notes_starts = record.get("notesStarts") is True
            continue
        match session_record(record):
            case CallStartedRecord(tool_use_id=id_, notes_changes=notes_changes, process_mark=mark):
                use = next((use for use in open_uses if use.id == id_), None)
                if use is not None:
                    is_ours = _MARK.fullmatch(mark) and not record.get("forkedFrom")
                    found[id_] = UnfinishedCall(use, True, notes_changes, process_mark=mark if is_ours else "")
            case FileChangesRecord(tool_use_id=id_, files=files) if id_ in found:
                call = found[id_]
                changes = [IntendedChange(Path(file.path), file.before, file.after) for file in files if file]
                is_whole = call.notes_changes and None not in files
                found[id_] = UnfinishedCall(call.tool_use, True, is_whole, (*call.changes, *changes))
            case _:
                pass
    return [found.get(use.id) or UnfinishedCall(use, is_begun=not notes_starts) for use in open_uses]
