"""Requests as a recorded cassette keeps them: whole in the end, and nothing twice.

System prompt and tools are written when they change. Of the messages, those that begin the request as they began the
one before are counted, those that the cassette has as records are named by their id, and only others, such as what a
compaction puts in the place of older ones, are written out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from panpan.capabilities.cassettes.canonical import canonical_message, canonical_tool, digest
from panpan.capabilities.cassettes.changed_text import Change, changed_json
from panpan.models.wire import sampling_fields
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import Message


class RequestWriter:
    """Makes lines of requests.

    Args:
        change: Takes secrets out of a text.
    """

    def __init__(self, change: Change) -> None:
        self._change = change
        self._recorded: dict[str, str] = {}  # digests of the messages that the cassette has, by their ids
        self._prefix: Any = None
        self._prefix_digest = ""
        self._sent: list[Message] = []

    def note(self, message: Message) -> None:
        """Note that the cassette has a message as a record."""
        self._recorded[message.uuid] = digest(changed_json(canonical_message(message), self._change))

    def line(self, request: ModelRequest, options: ModelOptions) -> dict[str, Any]:
        """Return what the line of the next request says."""
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
            raise ValueError("it holds what is no message")


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
