"""Requests in one form, their lines in a cassette, and the first place where two of them differ.

Two requests with the same canonical form are the same bytes on every wire. Ids of messages, times and prices are no
part of it; ids of calls are, since they are sent. A line of a request repeats nothing that the cassette has already.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

from panpan.capabilities.cassettes.recorded_reply import Change, changed_json
from panpan.models.wire import sampling_fields
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage


def canonical_message(message: Message) -> dict[str, Any]:
    """Return the canonical form of a message: the fields that are sent."""
    match message:
        case UserMessage(content=content):
            return {"role": "user", "content": _dumped(content)}
        case SystemReminder(text=text):
            return {"role": "reminder", "text": text}
        case AssistantMessage(content=content):
            return {"role": "assistant", "content": _dumped(content)}
        case ToolResultMessage(result=result):
            body = {"role": "tool_result", "tool_use_id": result.tool_use_id, "is_error": result.is_error}
            return {**body, "content": _dumped(result.content)}


def canonical_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return the canonical form of a tool: the fields that are sent."""
    return {"name": tool.name, "description": tool.description, "input_schema": plain(tool.input_schema)}


def canonical_request(request: ModelRequest) -> dict[str, Any]:
    """Return a request in its one form."""
    return {
        "system": request.system,
        "tools": [canonical_tool(tool) for tool in request.tools],
        "messages": [canonical_message(message) for message in request.messages],
    }


def outline(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each call in canonical messages with whether it failed, and none of the text."""
    rows: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        for block in message.get("content", ()) if message["role"] == "assistant" else ():
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
                rows.append({"calls": block["name"], "input": block["input"]})
        if message["role"] == "tool_result":
            rows.append({"answers": names.get(message["tool_use_id"], ""), "is_error": message["is_error"]})
    return rows


def plain(value: Any) -> Any:
    """Return JSON as reading it from a file gives it: mappings as dicts, tuples as lists."""
    return json.loads(json.dumps(value, ensure_ascii=False))


def digest(value: Any) -> str:
    """Return the SHA-256 of JSON in its one spelling."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def transcript_hash(messages: Iterable[Message]) -> str:
    """Return the hash of a conversation: the same for the same messages, on whatever day and machine."""
    return digest([canonical_message(message) for message in messages])


def _dumped(blocks: Iterable[Any]) -> list[Any]:
    return [block.model_dump(mode="json", exclude_none=True) for block in blocks]


class RequestWriter:
    """Makes lines of requests.

    Args:
        change: Takes secrets out of a text.
    """

    def __init__(self, change: Change) -> None:
        self._change = change
        self._recorded: dict[str, str] = {}  # digests of the recorded messages, by their ids
        self._prefix: Any = None
        self._prefix_digest = ""
        self._sent: list[Message] = []

    def note(self, message: Message) -> None:
        """Note that the cassette has a message as a record."""
        self._recorded[message.uuid] = digest(changed_json(canonical_message(message), self._change))

    def line(self, request: ModelRequest, options: ModelOptions) -> dict[str, Any]:
        """Return the line for the next request."""
        kept = sum(1 for _ in _same(self._sent, request.messages))
        new = request.messages[kept:]
        self._sent[kept:] = new
        return {
            "options": {
                "model": options.model,
                "max_output_tokens": options.max_output_tokens,
                "thinking_budget_tokens": options.thinking_budget_tokens,
                "effort": options.effort,
                "temperature": options.temperature,
                **sampling_fields(options),
            },
            **self._changed_prefix(request),
            "kept": kept,
            "messages": [self._reference(message) for message in new],
        }

    def _changed_prefix(self, request: ModelRequest) -> dict[str, Any]:
        parts = (request.system, request.tools)
        if self._prefix is not None and parts[0] == self._prefix[0] and parts[1] is self._prefix[1]:
            return {}
        self._prefix = parts
        prefix = {"system": request.system, "tools": [canonical_tool(tool) for tool in request.tools]}
        changed: dict[str, Any] = changed_json(prefix, self._change)
        before, self._prefix_digest = self._prefix_digest, digest(changed)
        return {} if self._prefix_digest == before else changed

    def _reference(self, message: Message) -> Any:
        canonical = changed_json(canonical_message(message), self._change)
        return message.uuid if self._recorded.get(message.uuid) == digest(canonical) else canonical


class RequestReader:
    """Makes requests, in their canonical form, of the lines."""

    def __init__(self) -> None:
        self._recorded: dict[str, Any] = {}
        self._prefix: dict[str, Any] = {"system": "", "tools": []}
        self._sent: list[Any] = []

    def note(self, message: Message) -> None:
        """Note a message that the cassette has as a record."""
        self._recorded[message.uuid] = canonical_message(message)

    def request(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request that a line says.

        Raises:
            ValueError: The line is damaged, or names a message that the cassette does not have.
        """
        match line:
            case {"kept": int(kept), "messages": list(messages)} if kept <= len(self._sent):
                self._sent = [*self._sent[:kept], *map(self._message, messages)]
            case _:
                raise ValueError("it does not say which messages were sent")
        if "system" in line:
            self._prefix = {"system": line["system"], "tools": line.get("tools", [])}
        return {**self._prefix, "messages": self._sent}

    def _message(self, reference: Any) -> Any:
        if not isinstance(reference, str):
            return _checked(reference)
        if reference not in self._recorded:
            raise ValueError(f"it names the message {reference}, which is not there")
        return self._recorded[reference]


def _checked(message: Any) -> Any:
    """Return a message that is written out, if it is one."""
    match message:
        case {"role": "user", "content": list()} | {"role": "reminder", "text": str()}:
            return message
        case {"role": "tool_result", "tool_use_id": str(), "is_error": bool(), "content": list()}:
            return message
        case {"role": "assistant", "content": list(blocks)} if all(map(_is_block, blocks)):
            return message
        case _:
            raise ValueError("it contains something that is not a message")


def _is_block(block: Any) -> bool:
    match block:
        case {"type": "tool_use"}:
            return isinstance(block.get("id"), str) and isinstance(block.get("name"), str) and "input" in block
        case {"type": str()}:
            return True
        case _:
            return False


def _same(before: Sequence[Message], now: Sequence[Message]) -> Iterator[Message]:
    for old, new in zip(before, now, strict=False):
        if old is not new:
            return
        yield new


MAX_LINES = 12
MAX_CHARS = 160

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """First place where two values differ."""

    field: str
    """Path of the field, such as `messages[3].content[0].text`; empty if the two values are of different kinds."""
    recorded: Any
    """Recorded value; None if there was none."""
    now: Any

    @property
    def diff(self) -> str:
        """The two values against each other, as lines."""
        before, after = _lines(self.recorded), _lines(self.now)
        changed = [line for line in unified_diff(before, after, "recorded", "now", lineterm="", n=0)][2:]
        shown = [line[:MAX_CHARS] for line in changed if not line.startswith("@@")]
        if not shown:  # only line ends differ, which no line shows
            shown = [f"-{self.recorded!r}"[:MAX_CHARS], f"+{self.now!r}"[:MAX_CHARS]]
        left_out = len(shown) - MAX_LINES
        return "\n".join([*shown[:MAX_LINES], *([f"… {left_out} more lines"] if left_out > 0 else [])])

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"field": self.field, "recorded": self.recorded, "now": self.now, "diff": self.diff}


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first request that is not as it was recorded."""

    request: int
    """Its number, counted from 1; 0 where no single one is meant."""
    difference: Difference
    what: str = ""
    """Subject of the difference if it is not a request, such as the transcript."""

    @property
    def sentence(self) -> str:
        """Sentence that names the request and the field that differ."""
        return f"{self.what or f'request {self.request}'} differs in {self.difference.field or 'its kind'}"

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"request": self.request, "what": self.what, **self.difference.as_json()}


def first_difference(recorded: Any, now: Any) -> Difference | None:
    """Return the first difference in the order of the recorded value; None where both are the same."""
    found = next(_differences(recorded, now, ""), None)
    if found is None:
        return None
    place, before, after = found
    return Difference(
        place.removeprefix("."), None if before is _MISSING else before, None if after is _MISSING else after
    )


def _differences(recorded: Any, now: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    match recorded, now:
        case Mapping(), Mapping():
            for name in [*recorded, *(name for name in now if name not in recorded)]:
                yield from _differences(recorded.get(name, _MISSING), now.get(name, _MISSING), f"{place}.{name}")
        case list() | tuple(), list() | tuple():
            for index in range(max(len(recorded), len(now))):
                yield from _differences(_item(recorded, index), _item(now, index), f"{place}[{index}]")
        case _ if recorded is not now and (type(recorded) is not type(now) or recorded != now):
            yield place, recorded, now


def _item(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else _MISSING


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    return value.splitlines() if isinstance(value, str) else [json.dumps(value, ensure_ascii=False)]
