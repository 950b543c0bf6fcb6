"""What is exported of a session: its messages without secrets, and without what only a provider can read.

The rule: every format is made of a `Transcript` that went through `without_secrets`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from panpan.system.redact import Redactor
from panpan.types.content import Base64Source, RedactedThinkingBlock, ThinkingBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message

_FIXED = frozenset({"type", "uuid", "stop_reason"})
"""Fields whose values are panpan's own words."""


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
        case dict():
            return {_redacted(key, redactor): _redacted(item, redactor) for key, item in value.items()}
        case list() | tuple():
            return type(value)(_redacted(item, redactor) for item in value)
        case _:
            return value
