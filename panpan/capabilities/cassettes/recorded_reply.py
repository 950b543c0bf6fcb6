"""One recorded reply: the events of the model's stream with their times, or how it failed, as JSON.

A delta is `["text", index, piece]`, so that a reply of ten thousand pieces stays readable and small; all other events
are objects. Texts are changed as wholes, before they are cut into the same number of pieces again.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, assert_never

from pydantic import TypeAdapter

from panpan.errors import (
    AuthenticationError,
    CassetteError,
    ConfigError,
    ContextOverflowError,
    ProviderError,
    RateLimitError,
    RetryableError,
    StreamError,
)
from panpan.types.content import AssistantContent
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Waiting,
)
from panpan.types.messages import AssistantMessage, Usage

_block: TypeAdapter[AssistantContent] = TypeAdapter(AssistantContent)


def event_json(event: StreamEvent) -> Any:
    """Return an event as JSON."""
    match event:
        case TextDelta(index=index, text=text):
            return ["text", index, text]
        case ThinkingDelta(index=index, text=text):
            return ["thinking", index, text]
        case ToolInputDelta(index=index, json=text):
            return ["input", index, text]
        case Waiting(reason=reason):
            return {"event": "waiting", "reason": reason}
        case ReplyStarted(message_id=message_id, model=model, usage=usage):
            started = {"event": "reply_started", "message_id": message_id, "model": model}
            return {**started, "usage": usage.model_dump(mode="json")}
        case BlockStarted(index=index, kind=kind, tool_use_id=tool_use_id, tool_name=tool_name):
            call = {"tool_use_id": tool_use_id, "tool_name": tool_name} if kind == "tool_use" else {}
            return {"event": "block_started", "index": index, "kind": kind, **call}
        case BlockFinished(index=index, block=block):
            return {"event": "block_finished", "index": index, "block": block.model_dump(mode="json")}
        case AssistantMessage():
            return {"event": "message", "message": event.model_dump(mode="json")}
        case _:
            assert_never(event)


def event_of(value: Any) -> StreamEvent:
    """Return the event that JSON says; raise `ValueError` for an unknown one."""
    match value:
        case ["text", int(index), str(text)]:
            return TextDelta(index, text)
        case ["thinking", int(index), str(text)]:
            return ThinkingDelta(index, text)
        case ["input", int(index), str(text)]:
            return ToolInputDelta(index, text)
        case {"event": "waiting", "reason": str(reason)}:
            return Waiting(reason)
        case {"event": "reply_started", "message_id": str(message_id), "model": str(model), "usage": usage}:
            return ReplyStarted(message_id, model, Usage.model_validate(usage))
        case {"event": "block_started", "index": int(index), "kind": kind} if kind in _KINDS:
            return BlockStarted(index, kind, value.get("tool_use_id", ""), value.get("tool_name", ""))
        case {"event": "block_finished", "index": int(index), "block": block}:
            return BlockFinished(index, _block.validate_python(block))
        case {"event": "message", "message": message}:
            return AssistantMessage.model_validate(message)
        case _:
            raise ValueError(f"{_named(value)} is no event of a model's stream")


_KINDS = ("text", "thinking", "redacted_thinking", "tool_use")


def _named(value: Any) -> str:
    return repr(value.get("event")) if isinstance(value, Mapping) else repr(value)[:40]


_FAILURES: Mapping[str, type[ProviderError]] = {
    kind.__name__: kind
    for kind in (
        ProviderError,
        AuthenticationError,
        ContextOverflowError,
        CassetteError,
        RetryableError,
        RateLimitError,
        StreamError,
    )
}


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """What a provider yielded for one request."""

    events: tuple[tuple[float, StreamEvent], ...]
    """Each with the seconds since the request was sent."""
    failure: ProviderError | None = None
    """What it raised in the end."""

    @property
    def message(self) -> AssistantMessage | None:
        """The whole reply; None where it failed or was cut off."""
        last = self.events[-1][1] if self.events else None
        return last if isinstance(last, AssistantMessage) else None

    @property
    def is_cut_off(self) -> bool:
        """True if nobody waited for its end."""
        return self.message is None and self.failure is None

    def as_json(self) -> dict[str, Any]:
        """Return what a line of a cassette says of it."""
        return {
            "events": [[round(at_s, 4), event_json(event)] for at_s, event in self.events],
            "failure": None if self.failure is None else _failure_json(self.failure),
        }


def recorded_reply(line: Mapping[str, Any], place: str) -> RecordedReply:
    """Return the reply that a line of a cassette says; raise `ConfigError` if there is none."""
    try:
        events = tuple((float(at_s), event_of(event)) for at_s, event in line["events"])
        failure = line.get("failure")
        return RecordedReply(events, None if failure is None else _failure_of(failure))
    except (KeyError, TypeError, ValueError) as exc:
        raise ConfigError(f"cassette {place}: the reply cannot be read: {_reason(exc)}") from exc


def _reason(exc: Exception) -> str:
    return f"there is no {exc}" if isinstance(exc, KeyError) else str(exc).splitlines()[0]


def _failure_json(failure: ProviderError) -> dict[str, Any]:
    kind = type(failure).__name__
    return {
        "kind": kind if kind in _FAILURES else "RetryableError" if isinstance(failure, RetryableError) else "",
        "text": str(failure),
        "provider": failure.provider,
        "status": failure.status,
    }


def _failure_of(value: Mapping[str, Any]) -> ProviderError:
    kind = _FAILURES.get(value["kind"], ProviderError)
    return kind(value["text"], provider=value.get("provider", ""), status=value.get("status"))


Change: TypeAlias = Callable[[str], str]
"""Returns a text as it shall be."""

_Place: TypeAlias = tuple[type, int]

_OPAQUE: Mapping[object, str] = {"base64": "data", "redacted_thinking": "data", "thinking": "signature"}
"""Fields that hold bytes or seals, and no text, by the type of what has them."""


def changed_json(value: Any, change: Change) -> Any:
    """Return JSON with every text in it changed, but for names and what is opaque."""
    match value:
        case str():
            return change(value)
        case Mapping():
            opaque = _opaque_field(value)
            return {name: item if name == opaque else changed_json(item, change) for name, item in value.items()}
        case list() | tuple():
            return [changed_json(item, change) for item in value]
        case _:
            return value


def changed_reply(reply: RecordedReply, change: Change) -> RecordedReply:
    """Return a reply with its texts changed; when each piece came stays as it was."""
    pieces: dict[_Place, list[str]] = {}
    for _, event in reply.events:
        if (piece := _piece(event)) is not None:
            pieces.setdefault(piece[0], []).append(piece[1])
    anew = {place: iter(recut(texts, _changed_whole(place, "".join(texts), change))) for place, texts in pieces.items()}
    return RecordedReply(tuple((at_s, _changed(event, change, anew)) for at_s, event in reply.events), reply.failure)


def _changed_whole(place: _Place, text: str, change: Change) -> str:
    """Return the text of a block changed; arguments as what they mean, whatever way of writing the model chose."""
    changed = change(text)
    if place[0] is not ToolInputDelta:
        return changed
    try:
        means = json.loads(changed)
    except (ValueError, RecursionError):
        return changed
    meant = changed_json(means, change)
    return changed if meant == means else json.dumps(meant, ensure_ascii=False)


def recut(pieces: Sequence[str], text: str) -> list[str]:
    """Return `text` in as many pieces, cut where `pieces` were; where it has another length, at about these places."""
    length = sum(map(len, pieces))
    if not length:
        return [text, *pieces[1:]] if pieces else []
    cuts, end = [0], 0
    for piece in pieces:
        end += len(piece)
        cuts.append(round(end * len(text) / length))
    return [text[start:end] for start, end in pairwise(cuts)]


def _piece(event: StreamEvent) -> tuple[_Place, str] | None:
    match event:
        case TextDelta(index=index, text=text) | ThinkingDelta(index=index, text=text):
            return (type(event), index), text
        case ToolInputDelta(index=index, json=text):
            return (ToolInputDelta, index), text
        case _:
            return None


def _changed(event: StreamEvent, change: Change, anew: Mapping[_Place, Iterator[str]]) -> StreamEvent:
    match event:
        case TextDelta(index=index) | ThinkingDelta(index=index) | ToolInputDelta(index=index):
            return type(event)(index, next(anew[type(event), index]))
        case BlockFinished() | AssistantMessage():
            return event_of(_with_texts(event_json(event), change))
        case _:
            return event


def _with_texts(value: Any, change: Change) -> Any:
    """Change what a block or a message says, and nothing of what it is."""
    match value:
        case {"message": {"content": content} as message}:
            return {**value, "message": {**message, "content": [_changed_block(block, change) for block in content]}}
        case {"block": block}:
            return {**value, "block": _changed_block(block, change)}
        case _:
            return value


def _changed_block(block: Mapping[str, Any], change: Change) -> dict[str, Any]:
    kept = ("type", "id", "name", _opaque_field(block))
    return {name: item if name in kept else changed_json(item, change) for name, item in block.items()}


def _opaque_field(value: Mapping[Any, Any]) -> str | None:
    kind = value.get("type")
    return _OPAQUE.get(kind) if isinstance(kind, str) else None
