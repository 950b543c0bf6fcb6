"""The fold: what a session's records add up to.

Records form a tree by `parentUuid`, and the conversation is the path from its root to the newest record. Nothing in the
log grants a permission; it only says what was said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from panpan.core.conversation import repair_history
from panpan.session.budget.session_budget import spending_of
from panpan.session.budget.spending import Spending
from panpan.session.log.record_kinds import (
    CallStartedRecord,
    CompactionRecord,
    FileChangesRecord,
    ModelRecord,
    OpenedRecord,
    PermissionModeRecord,
    PlanFileRecord,
    PrefixRecord,
    SessionPrefix,
    SessionRecord,
    TitleRecord,
    reply_in,
    session_record,
)
from panpan.session.log.records import FORMAT_VERSION, format_version, message_of
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import IntendedChange
from panpan.types.messages import AssistantMessage, Compaction, Message, ToolResultMessage
from panpan.types.pattern import compile_late
from panpan.types.permission import PermissionMode

_MARK = compile_late(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class UnfinishedCall:
    """A call of the newest reply without a result, as the log tells it."""

    tool_use: ToolUseBlock
    is_begun: bool
    """False if it has changed nothing."""
    notes_changes: bool = False
    """True if it changed no file but those of `changes`."""
    changes: Sequence[IntendedChange] = field(default_factory=tuple)
    process_mark: str = ""
    """Mark of the processes that it started; empty if it started none, or is another session's."""


def open_calls(messages: Sequence[Message]) -> list[ToolUseBlock]:
    """Return the calls of the newest reply that have no result.

    Messages behind the reply do not settle them: a command that the user runs is recorded before the next turn.
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
    """Return what the log tells of `open_uses`, the calls without results in its path of records."""
    if not open_uses:
        return []
    found: dict[str, UnfinishedCall] = {}
    notes_starts = False
    for record in records:
        if record.get("type") == "assistant":
            notes_starts = record.get("notesStarts") is True
            continue
        match session_record(record):
            case CallStartedRecord(
                tool_use_id=id_, notes_changes=notes_changes, process_mark=mark, revised_input=revised
            ):
                use = next((use for use in open_uses if use.id == id_), None)
                if use is not None:
                    use = use if revised is None else use.model_copy(update={"input": revised})
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


@dataclass(slots=True)
class FoldedSession:
    """Content of a session's log."""

    prefixes: dict[str, SessionPrefix] = field(default_factory=dict)
    """Beginning of its requests (system prompt and tools), by the profile of the model."""
    permission_mode: PermissionMode | None = None
    """Mode that the user chose last in the session; None if they kept that of the settings."""
    plan_file: str | None = None
    """Name of the file with its newest plan, which may be any text; None if there is no plan."""
    is_plan_approved: bool = False
    is_interactive: bool = True
    """False if the log says that only unattended runs have used it."""
    title: str | None = None
    model: str | None = None
    """Provider's name of the model that was asked last, or chosen since; None if the log does not say."""
    messages: list[Message] = field(default_factory=list)
    """Messages that are valid to send."""
    compactions: list[Compaction] = field(default_factory=list)
    """Compactions of its messages, oldest first."""
    side_calls: list[AssistantMessage] = field(default_factory=list)
    """Replies to side calls, such as for titles: they are no part of the conversation, but cost money too."""
    spent: Spending = field(default_factory=Spending)
    """Spending on all branches, with that of which no message of the conversation is left."""
    begun_in: str | None = None
    """The folder that it was begun in; None if the log does not say."""
    git_branch: str = ""
    unfinished: Sequence[UnfinishedCall] = ()
    """Calls of the newest reply without a result; `messages` has one for each, which says that nothing is known."""
    last_uuid: str | None = None
    """The record that the next one follows."""
    is_from_newer_version: bool = False
    """True if a record says that it needs a newer panpan."""


def fold_records(records: Iterable[Mapping[str, Any]]) -> FoldedSession:
    """Return what `records` add up to, in whatever state a crash left them."""
    records = list(records)
    session = FoldedSession(spent=spending_of(records))
    path = path_to_newest(records)
    cwd = path[0].get("cwd") if path else None
    session.begun_in = cwd if isinstance(cwd, str) else None
    branch = path[0].get("gitBranch") if path else None
    session.git_branch = branch if isinstance(branch, str) else ""
    for record in path:
        session.last_uuid = record["uuid"]
        session.is_from_newer_version |= format_version(record) > FORMAT_VERSION
        match record:
            case {"type": "assistant", "message": {"model": str(model)}} if model:
                session.model = model
            case _:
                _take_note(session, session_record(record))
    messages = [message for record in path if (message := message_of(record)) is not None]
    session.unfinished = unfinished_calls(path, open_calls(messages))
    session.messages = list(repair_history(messages, never_begun=_never_begun(path)))
    return session


def _take_note(session: FoldedSession, record: SessionRecord | None) -> None:
    match record:
        case PrefixRecord(prefix=prefix):
            session.prefixes[prefix.profile] = prefix
        case PermissionModeRecord(permission_mode=mode):
            session.permission_mode = mode
        case OpenedRecord(interactive=is_interactive):
            session.is_interactive = is_interactive
        case PlanFileRecord(plan_file=name, is_approved=is_approved):
            session.plan_file, session.is_plan_approved = name, is_approved
        case ModelRecord(model=model) if model:
            session.model = model
        case CompactionRecord(compaction=compaction):
            session.compactions.append(compaction)
        case TitleRecord(summary=title):
            session.title = title
            if (reply := reply_in(record.reply)) is not None:
                session.side_calls.append(reply)
        case _:
            pass


def path_to_newest(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records from the root to the newest; one whose parent was lost follows the record before it."""
    parents = parents_of(records)
    path = []
    index: int | None = len(records) - 1 if records else None
    while index is not None:
        path.append(records[index])
        index = parents[index]
    return path[::-1]


def parents_of(records: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return the place of the record that each one follows; None for the first, and for one that leaves everything."""
    index_by_uuid = {record["uuid"]: index for index, record in enumerate(records)}
    parents: list[int | None] = []
    for index, record in enumerate(records):
        if index == 0 or is_new_root(record):
            parents.append(None)
            continue
        parent = index_by_uuid.get(str(record.get("parentUuid")), index - 1)
        # a parent comes before its child; anything else is damage, and could be a circle
        parents.append(parent if parent < index else index - 1)
    return parents


_OF_FILES = frozenset({"snapshot", "receipt"})
"""Records about the files, which count on every branch."""


def records_to_copy(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what a copy of a session consists of, in order: the path to its newest record, snapshots and receipts.

    The files have one past, whatever branches the conversation has. The first of the copy has no parent, and each other
    one follows the one before.
    """
    path = {id(record) for record in path_to_newest(records)}
    copied = (record for record in records if id(record) in path or record.get("subtype") in _OF_FILES)
    return [{name: record[name] for name in record if name != "parentUuid"} for record in copied]


def is_new_root(record: Mapping[str, Any]) -> bool:
    """Return True for a rewind that has left everything that was said."""
    return record.get("subtype") == "rewind" and record.get("parentUuid") is None


def _never_begun(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of the calls that changed nothing, for the log would say that they had begun."""
    asked: set[str] = set()
    begun: set[str] = set()
    for record in records:
        match record:
            case {"type": "assistant", "notesStarts": True, "message": {"content": [*blocks]}}:
                uses = (block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use")
                asked.update(id_ for use in uses if isinstance(id_ := use.get("id"), str))
            case {"type": "system", "subtype": "call_started", "toolUseId": str(id_)}:
                begun.add(id_)
    return asked - begun
