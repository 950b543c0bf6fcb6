"""Records of a foreign transcript as what a session of panpan keeps: messages, compactions and a title."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, get_args

from panpan.core.conversation import repair_history
from panpan.session.importing.claude_transcript import (
    Record,
    assistant_blocks,
    conversation_in,
    reply_id,
    result_block,
    user_blocks,
)
from panpan.session.log.record_kinds import CompactionRecord, ImportedRecord, TitleRecord, session_record
from panpan.session.log.recorder import write_whole_log
from panpan.session.log.records import format_version, message_of, record_of
from panpan.types.content import AssistantContent, ChecklistDisplay, ChecklistItem, ItemStatus, TextBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionReport,
    CompactionTrigger,
    Message,
    StopReason,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
    new_id,
)

CAUSE = "imported"
"""Cause of reminders that the other program gave its model."""

_CHECKLIST_TOOL = "TodoWrite"
"""Tool of the other program that writes a checklist; its results do not tell that."""
_SYNTHETIC = "<synthetic>"
"""Model of replies that the other program wrote itself, such as for errors."""
_CHARS_OF_TOKEN = 4


@dataclass(slots=True)
class Converted:
    """Messages and facts that were read from a transcript, in panpan's form."""

    messages: list[Message] = field(default_factory=list)
    """Messages that are valid to send."""
    compactions: dict[str, list[Compaction]] = field(default_factory=dict)
    """Compactions by the id of the message that was the newest then, oldest first."""
    timestamps: dict[str, str] = field(default_factory=dict)
    """Time of each message by its id, as written in the transcript."""
    title: str = ""
    cwd: str = ""
    """The folder that it was begun in; empty if the transcript does not say."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Parts of the transcript that are not in the session, in words, with their number."""


def convert(records: Sequence[Record]) -> Converted:
    """Return what a transcript becomes, whatever it holds."""
    chosen = conversation_in(records)
    conversion = _Conversion()
    for record in chosen:
        conversion.take(record)
    found = conversion.found
    found.messages = list(repair_history(conversion.messages()))
    found.title = _title(records)
    found.cwd = next((cwd for record in chosen if isinstance(cwd := record.get("cwd"), str)), "")
    found.left_out.update(_left_out(records, chosen))
    return found


@dataclass(slots=True)
class _Reply:
    uuid: str
    blocks: list[AssistantContent] = field(default_factory=list)
    body: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of its newest part."""

    def whole(self) -> AssistantMessage:
        model = self.body.get("model")
        return AssistantMessage(
            uuid=self.uuid,
            content=tuple(self.blocks),
            model=model if isinstance(model, str) else "",
            stop_reason=_stop_reason(self.body.get("stop_reason"), self.blocks),
            usage=_usage(self.body.get("usage")),
        )


class _Conversion:
    def __init__(self) -> None:
        self.found = Converted()
        self._messages: list[Message | _Reply] = []
        self._replies: dict[str, _Reply] = {}
        self._ids: set[str] = set()
        self._checklists: dict[str, ChecklistDisplay] = {}
        self._boundary: Mapping[str, Any] | None = None

    def messages(self) -> Iterator[Message]:
        for message in self._messages:
            if not isinstance(message, _Reply):
                yield message
            elif message.blocks:
                yield message.whole()

    def take(self, record: Record) -> None:
        is_own = format_version(record) > 0
        own = message_of(record) if is_own else None
        noted = session_record(record) if is_own else None
        match record:
            case _ if own is not None:
                self._add(own.model_copy(update={"uuid": self._uuid(record)}), record)
            case _ if isinstance(noted, CompactionRecord):
                self._compact(noted.compaction)
            case {"type": "assistant", "message": {"content": content} as body}:
                if body.get("model") == _SYNTHETIC or record.get("isApiErrorMessage") is True:
                    self.found.left_out["notes of the program about errors"] += 1
                else:
                    self._take_reply(record, body, content)
            case {"type": "user", "message": {"content": content}}:
                self._take_user(record, content)
            case {"type": "system", "subtype": "compact_boundary"}:
                metadata = record.get("compactMetadata")
                self._boundary = metadata if isinstance(metadata, dict) else {}
            case {"type": "user" | "assistant"}:
                self.found.left_out["messages that cannot be read"] += 1
            case _:
                pass

    def _take_reply(self, record: Record, body: Mapping[str, Any], content: Any) -> None:
        id_ = reply_id(record)
        reply = self._replies.get(id_) if id_ is not None else None
        if reply is None:
            reply = _Reply(self._uuid(record))
            if id_ is not None:
                self._replies[id_] = reply
            self._messages.append(reply)
            self._note_time(reply.uuid, record)
        blocks = list(assistant_blocks(content))
        for block in blocks:
            if isinstance(block, ToolUseBlock) and (checklist := _checklist(block)) is not None:
                self._checklists[block.id] = checklist
        reply.blocks += blocks
        reply.body = body

    def _take_user(self, record: Record, content: Any) -> None:
        blocks = content if isinstance(content, list) else []
        for result in filter(None, map(result_block, blocks)):
            shown = self._checklists.get(result.tool_use_id)
            self._add(ToolResultMessage(uuid=self._uuid(record), result=result, display=shown), record)
        said = tuple(user_blocks(content))
        if not said:
            return
        if record.get("isMeta") is True:
            text = "\n".join(block.text for block in said if isinstance(block, TextBlock))
            if text:
                self._add(SystemReminder(uuid=self._uuid(record), text=_untagged(text), cause=CAUSE), record)
            return
        message = UserMessage(uuid=self._uuid(record), content=said)
        if record.get("isCompactSummary") is True:
            self._compact(_compaction(message, self._boundary or {}, len(self._messages)))
        self._add(message, record)

    def _compact(self, compaction: Compaction) -> None:
        self.found.compactions.setdefault(compaction.up_to, []).append(compaction)

    def _add(self, message: Message, record: Record) -> None:
        self._messages.append(message)
        self._note_time(message.uuid, record)

    def _note_time(self, uuid: str, record: Record) -> None:
        if isinstance(at := record.get("timestamp"), str):
            self.found.timestamps[uuid] = at

    def _uuid(self, record: Record) -> str:
        """Return the record's id for the first message that is made of it, and new ones for others."""
        uuid = str(record["uuid"])
        uuid = uuid if uuid not in self._ids else new_id()
        self._ids.add(uuid)
        return uuid


def _compaction(summary: UserMessage, metadata: Mapping[str, Any], before: int) -> Compaction:
    """Return what lets requests begin with the summary, as they did where it was made."""
    trigger: CompactionTrigger = "manual" if metadata.get("trigger") == "manual" else "auto"
    tokens = metadata.get("preTokens")
    return Compaction(
        trigger=trigger,
        up_to=summary.uuid,
        kept_from=summary.uuid,
        tokens_before=tokens if isinstance(tokens, int) else 0,
        tokens_after=len(summary.text) // _CHARS_OF_TOKEN,
        report=CompactionReport(summarised=before),
    )


def _stop_reason(reason: Any, blocks: Sequence[object]) -> StopReason:
    known: Sequence[StopReason] = get_args(StopReason)
    if reason in known:
        return next(one for one in known if one == reason)
    return "tool_use" if any(isinstance(block, ToolUseBlock) for block in blocks) else "end_turn"


def _usage(usage: Any) -> Usage:
    counts = usage if isinstance(usage, dict) else {}
    names = Usage.model_fields
    return Usage(**{name: count for name in names if type(count := counts.get(name)) is int and count >= 0})


def _title(records: Sequence[Record]) -> str:
    leaves = {uuid for record in records if isinstance(uuid := record.get("uuid"), str)}
    made = chosen = ""
    for record in records:
        match record:
            case {"type": "summary", "summary": str(text)}:
                leaf = record.get("leafUuid")
                made = text if leaf is None or (isinstance(leaf, str) and leaf in leaves) else made
            case {"type": "ai-title", "aiTitle": str(text)}:
                made = text
            case {"type": "custom-title", "customTitle": str(text)}:
                chosen = text
            case _:
                pass
    return " ".join((chosen or made).split())


def _left_out(records: Sequence[Record], chosen: Sequence[Record]) -> Iterator[str]:
    """Yield in words what each record is that is no part of the conversation."""
    taken = {id(record) for record in chosen}
    for record in records:
        if record.get("isSidechain") is True:
            yield "records of subagents"
        elif record.get("type") in ("user", "assistant"):
            if id(record) not in taken:
                yield "messages of branches that were left"
        elif record.get("type") not in ("system", "summary", "custom-title", "ai-title"):
            yield "records of other kinds"


def _untagged(text: str) -> str:
    """Return the text of a reminder without tags of its own, since panpan sets them."""
    return text.strip().removeprefix("<system-reminder>").removesuffix("</system-reminder>").strip()


def _checklist(use: ToolUseBlock) -> ChecklistDisplay | None:
    """Return the checklist that a call wrote, to be shown with its result; None if it wrote none."""
    written = use.input.get("todos") if use.name == _CHECKLIST_TOOL else None
    items = [item for item in written if isinstance(item, Mapping)] if isinstance(written, list) else []
    return ChecklistDisplay(todos=tuple(map(_item, items))) if items else None


def _item(written: Mapping[str, Any]) -> ChecklistItem:
    content, status = str(written.get("content", "")), written.get("status")
    return ChecklistItem(
        content=content,
        active_form=str(written.get("activeForm") or content),
        status=status if status in get_args(ItemStatus) else "pending",
    )


def write_session(converted: Converted, folder: Path, *, source: Path) -> Path:
    """Write a new session of a `source` and return its log; SessionError, SessionLogError on a full disk."""
    return write_whole_log(folder, _records(converted, source), cwd=Path(converted.cwd or "."))


def _records(converted: Converted, source: Path) -> Iterator[Mapping[str, Any]]:
    yield ImportedRecord(source=str(source)).as_json()
    for message in converted.messages:
        record = record_of(message)
        if at := converted.timestamps.get(message.uuid):
            record["timestamp"] = at
        yield record
        for compaction in converted.compactions.get(message.uuid, ()):
            yield CompactionRecord.of(compaction).as_json()
    if converted.title:
        yield TitleRecord(summary=converted.title).as_json()
