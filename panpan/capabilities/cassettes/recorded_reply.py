"""One recorded reply: the events of the model's stream with their times, or how it failed, as JSON.

A delta is `["text", index, piece]`, so that a reply of ten thousand pieces stays readable and small; all other events
are objects. Texts are changed as wholes, before they are cut into the same number of pieces again.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import anyio
from pydantic import TypeAdapter

from panpan.capabilities.cassettes.recorded_file import RecordedFile, read_recorded
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
from panpan.types.llm import ModelOptions, ModelRequest, Provider
from panpan.types.messages import AssistantMessage, ToolResultMessage, Usage

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
            raise ValueError(f"{_named(value)} is not an event of a model's stream")


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
    """Events that a provider yielded for one request, and the error if it failed."""

    events: tuple[tuple[float, StreamEvent], ...]
    """Each with the seconds since the request was sent."""
    failure: ProviderError | None = None

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
        """Return the fields of its line in a cassette."""
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
    new_texts = {
        place: iter(split_like(texts, _changed_whole(place, "".join(texts), change))) for place, texts in pieces.items()
    }
    return RecordedReply(
        tuple((at_s, _changed(event, change, new_texts)) for at_s, event in reply.events), reply.failure
    )


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


def split_like(pieces: Sequence[str], text: str) -> list[str]:
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


def _changed(event: StreamEvent, change: Change, new_texts: Mapping[_Place, Iterator[str]]) -> StreamEvent:
    match event:
        case TextDelta(index=index) | ThinkingDelta(index=index) | ToolInputDelta(index=index):
            return type(event)(index, next(new_texts[type(event), index]))
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


MAX_PAUSE_S = 2.0
"""Longest wait between two pieces, however long the model took."""

_SHOWN_CHARS = 200


class RecordedProvider(Provider):
    """Plays the replies of one recording, one for each request; without `sleep`, at once.

    A reply is played only where the conversation still fits, so that no success is shown that never was: the tools that
    it calls are there, and each call was answered as well, or as badly, as when it was recorded.
    """

    name = "cassette"

    def __init__(
        self,
        replies: Sequence[RecordedReply],
        *,
        outcomes: Mapping[str, bool] | None = None,
        place: str = "the cassette",
        sleep: Callable[[float], Awaitable[object]] | None = None,
    ) -> None:
        self._replies = drop_retried(replies)
        self._outcomes = outcomes or {}
        self._place = place
        self._sleep = sleep
        self._played = 0

    @classmethod
    def from_file(cls, path: Path) -> "RecordedProvider":
        """Return a provider that plays a file, about as fast as the model spoke.

        Raises:
            ConfigError: It is not there, or is no recorded cassette.
        """
        file = read_recorded(path)
        return cls(replies_of(file), outcomes=outcomes_of(file), place=str(path), sleep=anyio.sleep)

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        """Yield the next reply.

        Raises:
            CassetteError: The recording is over, or the request does not fit.
            ProviderError: The recorded request failed.
        """
        if self._played >= len(self._replies):
            raise self._misfit(f"is over: it has {self._played} replies, and one more was asked for")
        reply = self._replies[self._played]
        self._check(reply, request)
        self._played += 1
        before_s = 0.0
        for at_s, event in reply.events:
            if self._sleep is not None and at_s > before_s:
                await self._sleep(min(at_s - before_s, MAX_PAUSE_S))
            before_s = at_s
            yield event
        if reply.failure is not None:
            raise as_final(reply.failure)
        if reply.is_cut_off:
            raise self._misfit(f"was cut off in reply {self._played}")

    def _check(self, reply: RecordedReply, request: ModelRequest) -> None:
        """Refuse a request that the reply does not answer."""
        offered = {tool.name for tool in request.tools}
        for use in reply.message.tool_uses if reply.message else ():
            if use.name not in offered:
                raise self._misfit(f"calls {use.name} in reply {self._played + 1}, which is not offered")
        for message in reversed(request.messages):
            if isinstance(message, AssistantMessage):
                return
            if isinstance(message, ToolResultMessage):
                self._check_outcome(message)

    def _check_outcome(self, result: ToolResultMessage) -> None:
        has_failed = self._outcomes.get(result.tool_use_id, result.is_error)
        if has_failed != result.is_error:
            before, now = ("failed", "succeeded") if has_failed else ("succeeded", "failed")
            call = f"the call {result.tool_use_id} {before} when it was recorded and {now} now"
            raise self._misfit(f"does not fit before reply {self._played + 1}: {call}: {result.text[:_SHOWN_CHARS]!r}")

    def _misfit(self, complaint: str) -> CassetteError:
        return CassetteError(f"{self._place} {complaint}", provider=self.name)


def replies_of(file: RecordedFile) -> list[RecordedReply]:
    """Return the replies of a recording in their order; raise `ConfigError` if one cannot be read."""
    return [recorded_reply(line, f"{file.path}:{number}") for number, line in file.of_type("cassette_reply")]


def outcomes_of(file: RecordedFile) -> dict[str, bool]:
    """Return True for each recorded call that failed, by its id."""
    outcomes = {}
    for _, line in file.of_type("user"):
        match line:
            case {"message": {"content": [{"type": "tool_result", "tool_use_id": str(id_)} as result]}}:
                outcomes[id_] = bool(result.get("is_error"))
    return outcomes


def drop_retried(replies: Sequence[RecordedReply]) -> list[RecordedReply]:
    """Leave out the replies that failed and were asked for again: the next one takes their place."""
    return [
        reply
        for reply, following in zip(replies, [*replies[1:], None], strict=True)
        if following is None or not isinstance(reply.failure, RetryableError)
    ]


def as_final(failure: ProviderError) -> ProviderError:
    """Return a recorded failure as one that is not tried again."""
    if not isinstance(failure, RetryableError):
        return failure
    return ProviderError(str(failure), provider=failure.provider, status=failure.status)
