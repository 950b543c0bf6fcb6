"""Assembly of a reply from its pieces, with its events, in the same way for every provider.

The rules: blocks come one after the other (`BlockStarted`, its deltas, `BlockFinished`). Deltas of one network read are
joined. The block of a `BlockFinished` is the one in the final message. Ids of calls are unique in the conversation. A
call whose arguments did not arrive whole carries `input_error` and never runs.
"""

import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from time import monotonic
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from panpan.types.content import AssistantContent, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    ReplyStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from panpan.types.messages import AssistantMessage, StopReason, Usage, new_id, unique_id

MAX_ARGUMENT_CHARS = 8 * 1024 * 1024
"""Longest arguments of one call."""

_HALF_A_PAIR = (
    "The arguments of this call hold half of a surrogate pair, such as \\ud83d alone, which is not a character, so it "
    "was not run. Write the character itself, or leave it out."
)


class ArgumentsError(ValueError):
    """The arguments cannot be used; the text is for the model."""


def read_arguments(text: str) -> dict[str, Any]:
    """Return the arguments in `text`; an empty text is a call without arguments.

    Raises:
        ArgumentsError: The text is no JSON object, too long, or nested too deep.
    """
    if len(text) > MAX_ARGUMENT_CHARS:
        raise ArgumentsError(
            f"The arguments of this call are longer than {MAX_ARGUMENT_CHARS:,} characters, so it was not run. "
            "Do it in smaller steps."
        )
    if not text or text.isspace():
        return {}
    value = _parse(text)
    if not isinstance(value, dict):
        raise ArgumentsError(
            f"The arguments of this call are not a JSON object but {_kind(value)}, so it was not run. "
            "Send an object with the parameters by name."
        )
    return value


def encode_arguments(arguments: Any) -> str:
    """Return arguments that a server sent as a JSON value as text, for `read_arguments`."""
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        return "["  # refused like any incomplete JSON


def _parse(text: str) -> Any:
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError) as exc:
        if _holds_half_a_pair(text):
            raise ArgumentsError(_HALF_A_PAIR) from exc
        if "control character" not in str(exc):
            raise ArgumentsError(_not_json(exc)) from exc
        value = _parse_with_raw_line_ends(text)
    if "e" in text or "E" in text:  # 1e999 parses as infinity, which JSON does not have
        _refuse_infinity(value)
    return value


def _parse_with_raw_line_ends(text: str) -> Any:
    """Parse JSON whose strings hold line ends and tabs as they are, as weaker models write them."""
    try:
        value = json.loads(text, strict=False)
        from_json(json.dumps(value))  # the same limits on depth and characters as for other texts
    except (ValueError, RecursionError) as exc:
        raise ArgumentsError(_not_json(exc)) from exc
    return value


def _holds_half_a_pair(text: str) -> bool:
    """Return True if the text would be JSON without its halves of surrogate pairs."""
    try:
        whole = json.dumps(json.loads(text, strict=False), ensure_ascii=False)
    except (ValueError, RecursionError):
        return False
    return not whole.isascii() and any("\ud800" <= char <= "\udfff" for char in whole)


def _refuse_infinity(value: Any) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise ArgumentsError("The arguments of this call hold a number that is too large, so it was not run.")
        case dict():
            for item in value.values():
                _refuse_infinity(item)
        case list():
            for item in value:
                _refuse_infinity(item)


def _not_json(exc: Exception) -> str:
    if isinstance(exc, RecursionError) or "recursion" in str(exc):
        return "The arguments of this call are nested too deep, so it was not run. Send a flatter object."
    return f"The arguments of this call are not whole, valid JSON ({exc}), so it was not run. Send it again."


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"


CUT_OFF = (
    "The arguments of this call were cut off by the output limit, so it was not run. "
    "Do it in smaller steps, for example by writing a long file in several parts."
)
REFUSED = (
    "The reply was refused or filtered by the provider before the arguments of this call were whole, so it was not run."
)
_CUTS: Mapping[StopReason | None, str] = MappingProxyType(
    {"max_tokens": CUT_OFF, "model_context_window_exceeded": CUT_OFF, "refusal": REFUSED}
)
"""Texts for a call that was cut off, by the reason for the end of the reply."""

REPEATED_ID = "This call came with the id of another call in the same reply, so it was not run. Ask for it again."

BlockKind: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use"]


@dataclass(slots=True)
class OpenBlock:
    """A block that is not complete yet."""

    index: int
    kind: BlockKind
    parts: list[str] = field(default_factory=list)
    announced: int = 0
    """Number of `parts` that have been emitted as deltas."""
    tool_use_id: str = ""
    tool_name: str = ""
    signature: str = ""
    problem: str | None = None
    """Reason why this call must not run, whatever its arguments."""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.parts)

    def sign(self, signature: str) -> None:
        """Add a piece of its signature."""
        self.signature += signature

    def rename(self, tool_name: str) -> None:
        """Change the name of the tool, as more of it has come."""
        self.tool_name = tool_name


class ReplyBuilder:
    """Builder of one reply. Add each piece, then `take()` the events to yield.

    Args:
        model: The model's name in the request.
        taken_ids: Ids of calls that the conversation already has.
    """

    def __init__(self, *, model: str, taken_ids: AbstractSet[str] = frozenset()) -> None:
        self._model = model
        self._taken_ids = taken_ids
        self._wire_ids: set[str] = set()
        self._new_ids: set[str] = set()
        self._uuid = new_id()
        self._started_at = monotonic()
        self._events: list[StreamEvent] = []
        self._blocks: list[AssistantContent] = []
        self._open: OpenBlock | None = None
        self._waiting: OpenBlock | None = None  # a finished call that only the stop reason can judge
        self.is_started = False
        self.usage = Usage()

    def start(self, *, message_id: str = "", model: str = "") -> None:
        """Emit the start of the reply; later calls do nothing."""
        if not self.is_started:
            self.is_started = True
            self._events.append(ReplyStarted(message_id, model or self._model, self.usage, self._uuid))

    def count(self, usage: Usage) -> None:
        """Set the usage that the provider has counted so far."""
        self.usage = usage

    def open_block(self, kind: BlockKind, *, tool_use_id: str = "", tool_name: str = "") -> OpenBlock:
        """Begin a block, after closing the one before."""
        self.start()
        self.close_block()
        self._settle()
        block = OpenBlock(len(self._blocks), kind, tool_name=tool_name)
        if kind == "tool_use":
            self._name(block, tool_use_id)
        self._events.append(BlockStarted(block.index, kind, block.tool_use_id, tool_name))
        self._open = block
        return block

    def add(self, kind: BlockKind, piece: str) -> None:
        """Add to the open block if it is of this kind, else to a new one; for dialects that do not mark blocks."""
        block = self._open
        if block is None or block.kind != kind:
            block = self.open_block(kind)
        block.parts.append(piece)

    def close_block(self) -> None:
        """End the open block, if there is one."""
        block, self._open = self._open, None
        if block is None:
            return
        self._announce(block)
        match block.kind:
            case "text":
                self._finish(TextBlock(text=block.text))
            case "thinking":
                self._finish(ThinkingBlock(thinking=block.text, signature=block.signature))
            case "redacted_thinking":
                self._finish(RedactedThinkingBlock(data=block.text))
            case "tool_use":
                self._end_call(block)

    def finish(self, stop_reason: StopReason | None) -> None:
        """End the reply."""
        self.start()
        self.close_block()
        self._settle(_CUTS.get(stop_reason))
        if stop_reason is None:
            has_calls = any(isinstance(block, ToolUseBlock) for block in self._blocks)
            stop_reason = "tool_use" if has_calls else "unknown"
        self._events.append(
            AssistantMessage(
                uuid=self._uuid,
                content=tuple(self._blocks),
                model=self._model,
                stop_reason=stop_reason,
                usage=self.usage,
                duration_s=monotonic() - self._started_at,
            )
        )

    def take(self) -> list[StreamEvent]:
        """Return the events since the last call, including the pending deltas, joined."""
        if self._open is not None:
            self._announce(self._open)
        events, self._events = self._events, []
        return events

    def _name(self, block: OpenBlock, wire_id: str) -> None:
        if wire_id and wire_id in self._wire_ids:
            block.problem = REPEATED_ID
        self._wire_ids.add(wire_id)
        if wire_id and wire_id not in self._taken_ids and wire_id not in self._new_ids:
            block.tool_use_id = wire_id
        else:
            block.tool_use_id = unique_id(wire_id, self._taken_ids | self._new_ids)
        self._new_ids.add(block.tool_use_id)

    def _announce(self, block: OpenBlock) -> None:
        """Emit the pieces since the last time as one delta."""
        parts = block.parts
        if block.announced == len(parts):
            return
        text = parts[-1] if block.announced == len(parts) - 1 else "".join(parts[block.announced :])
        block.announced = len(parts)
        if not text:
            return
        match block.kind:
            case "text":
                self._events.append(TextDelta(block.index, text))
            case "thinking":
                self._events.append(ThinkingDelta(block.index, text))
            case "tool_use":
                self._events.append(ToolInputDelta(block.index, text))
            case "redacted_thinking":
                pass  # opaque: nothing to show

    def _end_call(self, block: OpenBlock) -> None:
        """Finish a call with complete arguments; any other waits for the reason of the reply's end."""
        try:
            arguments = read_arguments(block.text)
        except ArgumentsError:
            self._waiting = block
            return
        if not block.text.strip():
            self._waiting = block  # no arguments, or the reply was cut off before their first character
            return
        self._finish_call(block, arguments, block.problem)

    def _settle(self, cut: str | None = None) -> None:
        """Finish the waiting call; `cut` is the text for a call that was cut off, None if it was not."""
        block, self._waiting = self._waiting, None
        if block is None:
            return
        if cut is not None:
            self._finish_call(block, {}, block.problem or cut)
            return
        try:
            self._finish_call(block, read_arguments(block.text), block.problem)
        except ArgumentsError as exc:
            self._finish_call(block, {}, block.problem or str(exc))

    def _finish_call(self, block: OpenBlock, arguments: dict[str, object], problem: str | None) -> None:
        self._finish(
            ToolUseBlock(
                id=block.tool_use_id,
                name=block.tool_name,
                input={} if problem else arguments,
                input_error=problem,
            )
        )

    def _finish(self, block: AssistantContent) -> None:
        self._events.append(BlockFinished(len(self._blocks), block))
        self._blocks.append(block)
