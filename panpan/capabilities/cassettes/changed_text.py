"""The same reply, or the same JSON, with its texts changed: secrets taken out, or one folder put for another.

The rule: the text of a block is changed as a whole and then cut again at about the same places. What is to be changed
may lie across two pieces of a stream.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from panpan.capabilities.cassettes.recorded_reply import RecordedReply
from panpan.capabilities.cassettes.stream_json import event_json, event_of
from panpan.types.events import BlockFinished, StreamEvent, TextDelta, ThinkingDelta, ToolInputDelta
from panpan.types.messages import AssistantMessage

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
            return {**value, "message": {**message, "content": [_block(block, change) for block in content]}}
        case {"block": block}:
            return {**value, "block": _block(block, change)}
        case _:
            return value


def _block(block: Mapping[str, Any], change: Change) -> dict[str, Any]:
    kept = ("type", "id", "name", _opaque_field(block))
    return {name: item if name in kept else changed_json(item, change) for name, item in block.items()}


def _opaque_field(value: Mapping[Any, Any]) -> str | None:
    kind = value.get("type")
    return _OPAQUE.get(kind) if isinstance(kind, str) else None
