"""The kinds of record that a session writes beside its messages; each class says how its kind is written and read.

The fields are the format of the log, in the order in which they are written, named there in camel case. A kind that one
capability alone writes and reads is declared in its folder (`Capability.record_types`). What is damaged of a record
counts for nothing; where nothing can be made of the rest, the whole record is passed over.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, WrapValidator
from pydantic.alias_generators import to_camel

from panpan.models.provider_kind import FULL, ModelProfile
from panpan.session.budget.spending import ModelCosts, Spending
from panpan.session.log.records import message_of, record_of
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort, ToolDefinition
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionReport,
    CompactionTrigger,
    SystemReminder,
    Usage,
    new_id,
)
from panpan.types.permission import PermissionMode

UNNAMED = ""
"""Kind of model in a log that does not say it."""


@dataclass(frozen=True, slots=True)
class SessionPrefix:
    """System prompt and tools of all requests to models of one kind."""

    profile: str
    system: str | None = None
    """System prompt; None if the log does not say."""
    tools: Sequence[ToolDefinition] = ()


NO_PREFIX = SessionPrefix(FULL.name, "")


def kept_prefix(new: SessionPrefix, recorded: Mapping[str, SessionPrefix], profile: ModelProfile) -> SessionPrefix:
    """Return the prefix that models of this kind were sent before, as `recorded` by profile, or else `new`."""
    kept = recorded.get(new.profile)
    unnamed = recorded.get(UNNAMED)
    if kept is None and unnamed is not None and profile.includes_all(unnamed.tools):
        kept = unnamed
    if kept is None:
        return new
    return replace(
        new,
        system=new.system if kept.system is None else kept.system,
        tools=kept.tools or new.tools,
    )


def default_if_invalid(default: object) -> WrapValidator:
    """Return a validator that puts `default` in the place of what is damaged, so that the rest of the record counts."""

    def validated(value: Any, validate: Any) -> Any:
        try:
            return validate(value)
        except ValidationError:
            return default

    return WrapValidator(validated)


def is_none(value: object) -> bool:
    """Return True if there is nothing to write."""
    return value is None


def amount(value: Any) -> float:
    """Return a number that is at least 0; 0 for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(0.0, float(value)) if is_number else 0.0


def clamp_counts(value: Any) -> Usage:
    """Return what was counted; a log gives nothing back, so that no count is below 0."""
    try:
        usage = Usage.model_validate(value)
    except ValidationError:
        return Usage()
    return Usage(**{name: max(0, count) for name, count in usage.model_dump().items()})


Words: TypeAlias = Annotated[str, default_if_invalid("")]
"""A text; empty if there is none."""
Text: TypeAlias = Annotated[str, BeforeValidator(lambda value: str(value or ""))]
"""Any value, as text."""
Figure: TypeAlias = Annotated[int, default_if_invalid(0)]
Yes: TypeAlias = Annotated[bool, default_if_invalid(False)]
"""True only where the record says so."""
Amount: TypeAlias = Annotated[float, BeforeValidator(amount)]
Count: TypeAlias = Annotated[int, BeforeValidator(lambda value: int(amount(value)))]
RecordedReply: TypeAlias = Annotated[dict[str, Any] | None, default_if_invalid(None)]
"""Record of a reply that is no part of the conversation, which tells what it cost."""


class Record(BaseModel):
    """Content of one line of a log, or a part of it; the log adds the session, the time and the folder."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    def as_json(self) -> dict[str, Any]:
        """Return it for the log."""
        return self.model_dump(by_alias=True)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self | None:
        """Return what a record of this kind says; None if it is too damaged, or of another kind."""
        try:
            return cls.model_validate(record)
        except ValidationError:
            return None


class SystemRecord(Record):
    """A record of something that was decided, begun or done."""

    type: Literal["system"] = "system"
    subtype: str
    uuid: str = Field(default_factory=new_id)


class RecordedTool(Record):
    """A tool as it was sent to the model."""

    name: str
    description: str
    input_schema: dict[str, Any] = Field(alias="input_schema")


class PrefixRecord(SystemRecord):
    """Beginning of all requests to models of one kind, recorded so that a resumed session sends the same."""

    subtype: Literal["session_start", "prefix"]
    """`session_start` is the first record of the log, `prefix` a later one."""
    panpan_version: Words = ""
    profile: Annotated[str, default_if_invalid(UNNAMED)] = UNNAMED
    system: Annotated[str | None, default_if_invalid(None)] = None
    tools: Annotated[Sequence[Annotated[RecordedTool | None, default_if_invalid(None)]], default_if_invalid(())] = ()

    @classmethod
    def of(cls, prefix: SessionPrefix, *, opens_session: bool, panpan_version: str) -> Self:
        """Return the record of a prefix, as the first of the log or a later one."""
        return cls(
            subtype="session_start" if opens_session else "prefix",
            panpan_version=panpan_version,
            profile=prefix.profile,
            system=prefix.system,
            tools=[
                RecordedTool(name=tool.name, description=tool.description, input_schema=dict(tool.input_schema))
                for tool in prefix.tools
            ],
        )

    @property
    def prefix(self) -> SessionPrefix:
        """The prefix, without tools that are damaged."""
        tools = (ToolDefinition(one.name, one.description, one.input_schema) for one in self.tools if one is not None)
        return SessionPrefix(self.profile, self.system, tuple(tools))


class OpenedRecord(SystemRecord):
    """The session is open on a terminal from now on (`interactive`), or is not; without such a record it is."""

    subtype: Literal["opened"] = "opened"
    interactive: bool


class PermissionModeRecord(SystemRecord):
    """The user chose a permission mode in this session."""

    subtype: Literal["permission_mode"] = "permission_mode"
    permission_mode: PermissionMode


class PlanFileRecord(SystemRecord):
    """The session has a newer plan, or the user has approved it."""

    subtype: Literal["plan_file"] = "plan_file"
    plan_file: str
    """The name of its file alone: which folder plans lie in is not for a log to say."""
    is_approved: Yes = False


class ModelRecord(SystemRecord):
    """The session talks to another model, or with another effort, from now on."""

    subtype: Literal["model"] = "model"
    model: str
    effort: Annotated[Effort | None, default_if_invalid(None)] = None


class TitleRecord(Record):
    """The session has a title, in the form that viewers of other agents' transcripts read."""

    type: Literal["summary"] = "summary"
    uuid: str = Field(default_factory=new_id)
    summary: str
    """Title on one line."""
    reply: RecordedReply = Field(None, exclude_if=is_none)
    """The model's reply with the title; None if the user chose it."""


class CallStartedRecord(SystemRecord):
    """A call may change something from now on.

    Where the record of a reply has `notesStarts`, a call of it without this record has changed nothing.
    """

    subtype: Literal["call_started"] = "call_started"
    tool_use_id: str
    tool: Words = ""
    digest: Words = ""
    notes_changes: Yes = False
    """True if it changes nothing before a record of the files that it changes."""
    process_mark: Words = ""
    """Mark of the processes that it starts."""
    revised_input: Annotated[dict[str, Any] | None, default_if_invalid(None)] = Field(None, exclude_if=is_none)
    """Arguments that hooks gave it; None if it has those of the model."""


class RecordedChange(Record):
    """Change that a call is going to make to one file."""

    path: str
    before: str | None
    after: str | None


class FileChangesRecord(SystemRecord):
    """Changes that a call is going to make to files; it does nothing else."""

    subtype: Literal["file_changes"] = "file_changes"
    tool_use_id: str
    files: Sequence[Annotated[RecordedChange | None, default_if_invalid(None)]]
    """Changes; None in the place of a damaged one."""


class RewindRecord(SystemRecord):
    """The session goes on from an earlier record, its parent."""

    subtype: Literal["rewind"] = "rewind"
    left_uuid: Annotated[str | None, default_if_invalid(None)] = None
    """The record that was the newest before."""


class ImportedRecord(SystemRecord):
    """The session was made of a transcript of another program."""

    subtype: Literal["imported"] = "imported"
    source: Words = ""


_REPORT = {field.name for field in fields(CompactionReport)}


class CompactionFigures(Record):
    """Figures of a compaction, for people."""

    trigger: CompactionTrigger
    pre_tokens: int
    post_tokens: int
    kept: Figure = 0
    pinned: Figure = 0
    quoted: Figure = 0
    summarised: Figure = 0
    dropped: Figure = 0
    outputs: Figure = 0
    hint: Text = ""
    computed: Text = ""
    problem: Text = ""


class AddedReminder(Record):
    """Reminder that a compaction puts in the place of older messages."""

    uuid: str
    content: str
    cause: str


class CompactionRecord(SystemRecord):
    """Compaction, which replaces the beginning of the conversation from here on.

    All that it keeps is named by id, and what it adds is written out.
    """

    subtype: Literal["compact_boundary"] = "compact_boundary"
    content: Words = "Conversation compacted"  # viewers of other agents show this
    compact_metadata: CompactionFigures
    up_to: str
    pinned: list[str]
    added: list[AddedReminder]
    kept_from: str | None
    notes: dict[str, str]
    reply: RecordedReply = None

    @classmethod
    def of(cls, compaction: Compaction) -> Self:
        report = asdict(compaction.report)
        return cls(
            uuid=compaction.uuid,
            compact_metadata=CompactionFigures(
                trigger=compaction.trigger,
                pre_tokens=compaction.tokens_before,
                post_tokens=compaction.tokens_after,
                hint=compaction.hint,
                **report,
            ),
            up_to=compaction.up_to,
            pinned=list(compaction.pinned),
            added=[AddedReminder(uuid=one.uuid, content=one.text, cause=one.cause) for one in compaction.added],
            kept_from=compaction.kept_from,
            notes=dict(compaction.notes),
            reply=None if compaction.reply is None else record_of(compaction.reply),
        )

    @property
    def compaction(self) -> Compaction:
        figures = self.compact_metadata
        return Compaction(
            trigger=figures.trigger,
            up_to=self.up_to,
            tokens_before=figures.pre_tokens,
            tokens_after=figures.post_tokens,
            pinned=tuple(self.pinned),
            added=tuple(SystemReminder(uuid=one.uuid, text=one.content, cause=one.cause) for one in self.added),
            kept_from=self.kept_from,
            notes=self.notes,
            report=CompactionReport(**figures.model_dump(include=_REPORT)),
            reply=reply_in(self.reply),
            hint=figures.hint,
            uuid=self.uuid,
        )


class SpentOnModel(Record):
    """Use of one model."""

    model: str
    replies: Count = 0
    usage: Annotated[Usage, BeforeValidator(clamp_counts)] = Usage()
    known_cost_usd: Amount = Field(0.0, alias="costUSD")
    unpriced_replies: Count = 0
    uncounted_replies: Count = 0
    estimated_replies: Count = 0


class SpentRecord(SystemRecord):
    """Spending that no message of the log has."""

    subtype: Literal["spent"] = "spent"
    cause: Words = ""
    """Purpose, such as "interrupted reply"; for people who read the log."""
    calls: Count = 0
    seconds: Amount = 0.0
    api_seconds: Amount = 0.0
    models: Annotated[Sequence[Annotated[SpentOnModel | None, default_if_invalid(None)]], default_if_invalid(())] = ()

    @classmethod
    def of(cls, spending: Spending, cause: str) -> Self:
        return cls(
            cause=cause,
            calls=spending.calls,
            seconds=spending.seconds,
            api_seconds=spending.api_duration_s,
            models=[SpentOnModel(**asdict(costs)) for costs in spending.by_model.values()],
        )

    @property
    def spending(self) -> Spending:
        """The spending; damaged parts do not count."""
        spent = Spending(calls=self.calls, seconds=self.seconds, api_duration_s=self.api_seconds)
        for one in filter(None, self.models):
            spent.by_model.setdefault(one.model, ModelCosts(one.model)).join(ModelCosts(**dict(one)))
        return spent


_SystemRecord: TypeAlias = (
    PrefixRecord
    | OpenedRecord
    | PermissionModeRecord
    | PlanFileRecord
    | ModelRecord
    | CallStartedRecord
    | FileChangesRecord
    | RewindRecord
    | ImportedRecord
    | CompactionRecord
    | SpentRecord
)

SYSTEM_RECORDS: Sequence[type[SystemRecord]] = get_args(_SystemRecord)

SessionRecord: TypeAlias = Annotated[
    Annotated[_SystemRecord, Field(discriminator="subtype")] | TitleRecord, Field(discriminator="type")
]
"""The kinds of record that are the session's own, but for messages."""

_SESSION_RECORD = TypeAdapter[SessionRecord](SessionRecord, config=ConfigDict(defer_build=True))


def session_record(record: Mapping[str, Any]) -> SessionRecord | None:
    """Return what a record says; None for messages, for kinds that are not the session's, and for what is damaged."""
    if record.get("type") not in ("system", "summary"):
        return None  # the usual case, decided quickly
    try:
        return _SESSION_RECORD.validate_python(record)
    except ValidationError:
        return None


def subtypes_of(kinds: Iterable[type[SystemRecord]]) -> frozenset[str]:
    """Return what records of these kinds say that they are."""
    return frozenset(name for kind in kinds for name in get_args(kind.model_fields["subtype"].annotation))


def reply_in(record: Mapping[str, Any] | None) -> AssistantMessage | None:
    """Return the reply that another record holds; None if it holds none that can be read."""
    message = None if record is None else message_of(record)
    return message if isinstance(message, AssistantMessage) else None
