"""Content of an export: the messages of a session without secrets, and the sentences of readable formats about them.

The rule: every format is made of a `Transcript` that went through `without_secrets`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from panpan.core.conversation import ENDED, ENDED_BEFORE, INTERRUPTED, INTERRUPTED_BEFORE, NEVER_ANSWERED, NEVER_BEGUN
from panpan.errors import SessionError
from panpan.session.budget.spending import SessionCosts, session_costs
from panpan.session.descriptions import compaction_lines
from panpan.session.log.agent_log import agent_logs, agents_folder, begun_by
from panpan.session.log.fold import fold_records
from panpan.session.log.session_log import read_records
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import (
    Base64Source,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from panpan.types.dataclass import dataclass
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionReport,
    Message,
    ToolResultMessage,
    UserMessage,
)
from panpan.types.pattern import compile_late

_FIXED = frozenset({"type", "uuid", "stop_reason", "trigger", "up_to", "kept_from", "pinned"})
"""Fields whose values are panpan's own words, and ids."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session as it is exported."""

    session_id: str
    title: str
    model: str
    cwd: str
    panpan_version: str
    exported_at: datetime
    messages: Sequence[Message]
    compactions: Sequence[Compaction] = ()
    """Compactions that replaced its beginning in requests, oldest first."""
    git_branch: str = ""
    subagents: "Sequence[Transcript]" = ()
    """Conversations of the session's subagents; of those, it has none."""
    agent_id: str = ""
    """Id of the subagent whose conversation it is; empty for the session's own."""
    begun_by: Sequence[str] = ()
    """Ids of the calls of the session's own model that began the subagent and its further turns."""

    @property
    def parts(self) -> Iterator[Message | Compaction]:
        """The messages, and each compaction behind the newest message of its time and the results of that."""
        waiting: list[Compaction] = []
        for message in self.messages:
            if not isinstance(message, ToolResultMessage):
                yield from waiting
                waiting.clear()
            yield message
            waiting += [compaction for compaction in self.compactions if compaction.up_to == message.uuid]
        yield from waiting


def without_secrets(transcript: Transcript, redactor: Redactor) -> Transcript:
    """Return the transcript with every text redacted, and without thinking that is sealed or encrypted."""
    return replace(
        transcript,
        title=redactor.redact(transcript.title),
        model=redactor.redact(transcript.model),
        cwd=redactor.redact(transcript.cwd),
        messages=[_redacted(message, redactor) for message in transcript.messages],
        compactions=[_redacted(compaction, redactor) for compaction in transcript.compactions],
        git_branch=redactor.redact(transcript.git_branch),
        subagents=[without_secrets(subagent, redactor) for subagent in transcript.subagents],
    )


def _redacted(value: Any, redactor: Redactor) -> Any:
    """Return a message, or a part of one, with every text in it redacted; also the names of arguments."""
    match value:
        case str():
            return redactor.redact(value)
        case Base64Source():  # bytes of a picture may look like a key, and are useless once changed
            return value.model_copy(update={"media_type": redactor.redact(value.media_type)})
        case RedactedThinkingBlock():
            return value.model_copy(update={"data": ""})
        case ThinkingBlock():
            return value.model_copy(update={"thinking": redactor.redact(value.thinking), "signature": ""})
        case BaseModel():
            names = type(value).model_fields.keys() - _FIXED
            return value.model_copy(update={name: _redacted(getattr(value, name), redactor) for name in names})
        case Compaction() | CompactionReport():
            names = {one.name for one in fields(value)} - _FIXED
            return replace(value, **{name: _redacted(getattr(value, name), redactor) for name in names})
        case dict():
            return {_redacted(key, redactor): _redacted(item, redactor) for key, item in value.items()}
        case list() | tuple():
            return type(value)(_redacted(item, redactor) for item in value)
        case _:
            return value


MAX_TITLE_CHARS = 120
INTRODUCTION = "Exported by panpan. Keys, and text that looks like one, were replaced by [redacted]."


_REFUSED = compile_late(r"\w+ was not run\b")
_MARKS: Sequence[tuple[str, Callable[[str], bool]]] = (
    ("not run", lambda text: bool(_REFUSED.match(text))),
    ("not run", lambda text: text in (NEVER_BEGUN, INTERRUPTED_BEFORE, ENDED_BEFORE)),
    ("interrupted", lambda text: text.startswith((INTERRUPTED, ENDED))),
    ("not answered", lambda text: text.startswith(NEVER_ANSWERED)),
)
"""Marks for results that are errors but no failures of the call, by their text: the call was refused, or the turn ended
before it."""


def compaction_told(compaction: Compaction) -> tuple[str, str]:
    """Return what a compaction did, on one line, and what became of the messages."""
    first, *others = compaction_lines(compaction)
    return one_line(first), "\n".join(others[:-1])  # the last line says how to take it back, which an export cannot do


def results_by_call(messages: Sequence[Message]) -> Mapping[str, ToolResultMessage]:
    """Return the results by the id of the call that they answer, so that each can be shown with its call."""
    return {message.tool_use_id: message for message in messages if isinstance(message, ToolResultMessage)}


def title_of(transcript: Transcript) -> str:
    """Return what the session is called, on one line: its title, else the beginning of what the user said first."""
    first = next((message.text for message in transcript.messages if isinstance(message, UserMessage)), "")
    return one_line(transcript.title) or one_line(first) or "A session of panpan"


def facts_of(transcript: Transcript) -> Sequence[tuple[str, str]]:
    """Return the facts at the top of an exported file, each with its name."""
    costs = session_costs(transcript.messages)
    models = ", ".join(
        dict.fromkeys(message.model for message in transcript.messages if isinstance(message, AssistantMessage))
    )
    return (
        ("Session", one_line(transcript.session_id)),
        ("Folder", one_line(transcript.cwd)),
        ("Model", one_line(models or transcript.model)),
        ("Exported", transcript.exported_at.strftime("%Y-%m-%d %H:%M")),
        ("Tokens", _tokens(costs)),
    )


def call_title(use: ToolUseBlock) -> str:
    """Return a call on one line: its tool, and its first text, which says most."""
    text = next((value for value in use.input.values() if isinstance(value, str)), "")
    return one_line(f"{use.name} {text}")


def attachment(block: ImageBlock | DocumentBlock) -> str:
    """Return what is said in place of a picture or document."""
    size = len(block.source.data) * 3 // 4
    kind = "picture" if isinstance(block, ImageBlock) else "document"
    return one_line(f"[{kind}, {block.source.media_type}, {size:,} bytes]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a call."""

    mark: str
    is_error: bool = False


def outcome_of(result: ToolResultMessage | None) -> Outcome:
    """Return the outcome of a call; None if it was not answered when the session was exported."""
    if result is None:
        return Outcome("not answered")
    if not result.is_error:
        return Outcome("done")
    return Outcome(next((mark for mark, is_such in _MARKS if is_such(result.text)), "failed"), is_error=True)


def one_line(text: str) -> str:
    """Return the beginning of a text on one line, harmless for a terminal."""
    line = clean_line(text)
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1]}…"


def _tokens(costs: SessionCosts) -> str:
    usage = costs.usage
    sent = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    price = "price not known" if costs.cost_usd is None else f"${costs.cost_usd:.4f}"
    return (
        f"{sent:,} sent ({usage.cache_read_input_tokens:,} from the cache), {usage.output_tokens:,} received; {price}"
    )


def transcript_of(log: Path, *, panpan_version: str) -> Transcript:
    """Return a session as it is now, with its subagents; SessionError if its log cannot be read."""
    transcript = _transcript(list(read_records(log)), log.stem, panpan_version)
    return replace(transcript, subagents=subagent_transcripts(log, panpan_version=panpan_version))


def subagent_transcripts(log: Path, *, panpan_version: str) -> Sequence[Transcript]:
    """Return the conversations of a session's subagents, oldest first, without those that cannot be read."""
    found: list[Transcript] = []
    for path in agent_logs(agents_folder(log.parent, log.stem)):
        with suppress(SessionError):
            records = list(read_records(path))
            turns = [turn for record in records if (turn := begun_by(record)) is not None]
            if turns:
                transcript = _transcript(records, log.stem, panpan_version)
                calls = [turn.tool_use_id for turn in turns if not turn.parent]
                found.append(replace(transcript, agent_id=turns[0].id, title=turns[0].label, begun_by=calls))
    return found


def _transcript(records: Sequence[Mapping[str, Any]], session_id: str, panpan_version: str) -> Transcript:
    session = fold_records(records)
    models = [message.model for message in session.messages if isinstance(message, AssistantMessage)]
    return Transcript(
        session_id=session_id,
        title=session.title or "",
        model=models[-1] if models else "",
        cwd=session.begun_in or "",
        panpan_version=panpan_version,
        exported_at=datetime.now().astimezone(),
        messages=tuple(session.messages),
        compactions=tuple(session.compactions),
        git_branch=session.git_branch,
    )
