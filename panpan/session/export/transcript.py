"""What is exported of a session: its messages without secrets, and without what only a provider can read.

The rule: every format is made of a `Transcript` that went through `without_secrets`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from panpan.system.text.redact import Redactor
from panpan.types.compaction import Compaction, CompactionReport
from panpan.types.content import Base64Source, RedactedThinkingBlock, ThinkingBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message, ToolResultMessage

_FIXED = frozenset({"type", "uuid", "stop_reason", "trigger", "up_to", "kept_from", "pinned"})
"""Fields whose values are panpan's own words, and ids."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session as it is exported."""

    session_id: str
    title: str
    """May be empty."""
    model: str
    cwd: str
    panpan_version: str
    exported_at: datetime
    messages: Sequence[Message]
    compactions: Sequence[Compaction] = ()
    """What was sent in the place of beginnings of it, oldest first."""
    git_branch: str = ""
    subagents: "Sequence[Transcript]" = ()
    """Conversations of the session's subagents; of those, it has none."""
    agent_id: str = ""
    """The subagent whose conversation it is; empty: the session's own."""
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
    """Return the transcript with every text redacted, and without thinking that is sealed or encrypted.

    Args:
        transcript: As the session has it.
        redactor: Knows the secrets of the run; what looks like a key is taken out besides.
    """
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
        case Base64Source():  # bytes of a picture may look like anything, and are nothing once they are changed
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
