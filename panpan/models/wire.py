"""The wire format: JSON as bytes, events, and the history of requests, of which each message is encoded once."""

import json
import math
import operator
from collections.abc import Callable, Sequence
from hashlib import blake2s
from typing import Any, Protocol, TypeAlias

from pydantic_core import from_json

from panpan.errors import StreamError
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.pattern import compile_late

MAX_TOOL_NAME_CHARS = 64
"""OpenAI's limit; Anthropic allows 128."""

_MOST_DIGITS = 15

_NOT_IN_NAMES = compile_late(r"[^a-zA-Z0-9_-]")


def to_json(value: Any) -> bytes:
    """Return `value` as JSON; half of a surrogate pair, as undecodable file names bring, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def wire_tool_name(name: str) -> str:
    """Return a name that providers accept.

    Models sometimes call tools that cannot exist, such as "functions.Read". The call stays in the history, and a
    provider would refuse every later request because of its name.
    """
    return _NOT_IN_NAMES.sub("_", name)[:MAX_TOOL_NAME_CHARS] or "unnamed"


def wire_id(tool_use_id: str, *, max_chars: int) -> str:
    """Return an id that providers accept: unchanged if possible, else shortened and made unique by a digest.

    A conversation may hold ids of another provider, such as Kimi's "functions.Read:0".
    """
    if len(tool_use_id) <= max_chars and not _NOT_IN_NAMES.search(tool_use_id):
        return tool_use_id
    digest = blake2s(tool_use_id.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{_NOT_IN_NAMES.sub('_', tool_use_id)[: max_chars - 13]}-{digest}"


def sampling_fields(options: ModelOptions) -> dict[str, float]:
    """Return those of `top_p` and `top_k` that are set; the names are the same in both dialects."""
    values = {"top_p": options.top_p, "top_k": options.top_k}
    return {name: value for name, value in values.items() if value is not None}


def joined_body(head: bytes, messages: Sequence[bytes]) -> bytes:
    """Return a whole body: `head` ends with the bracket that opens the messages; there must be at least one."""
    pieces = list(messages)
    pieces[0] = head + pieces[0]
    pieces[-1] += b"]}"
    return b",".join(pieces)


def text_in(value: object) -> str:
    """Return a value of a server's JSON that should be text; empty if it is something else."""
    return value if isinstance(value, str) else ""


def list_in(value: object) -> list[Any]:
    """Return a value of a server's JSON that should be a list; empty if it is something else."""
    return value if isinstance(value, list) else []


def count_in(value: object) -> int:
    """Return a count of a server's JSON, which some servers write as a float or as text; 0 if it is none."""
    if isinstance(value, str):
        value = int(value) if len(value) <= _MOST_DIGITS and value.isascii() and value.isdigit() else 0
    if isinstance(value, float):
        value = math.ceil(value) if math.isfinite(value) else 0
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else 0  # type: ignore[return-value]


def has_text(text: str) -> bool:
    """Return True if the text holds more than blanks; providers refuse blocks that do not."""
    return bool(text) and not text.isspace()


_SHOWN_BYTES = 80


def read_event(data: bytes, *, provider: str) -> dict[str, Any]:
    """Return the JSON object in an event.

    Raises:
        StreamError: It is no JSON object, since the stream was damaged or is of another dialect.
    """
    try:
        document = from_json(data)
    except ValueError:
        document = _read_leniently(data)
    if isinstance(document, dict):
        return document
    start = data[:_SHOWN_BYTES].decode("utf-8", "replace")
    raise StreamError(
        f"{provider} sent an event that is not a JSON object, beginning with {start!r}", provider=provider
    )


def _read_leniently(data: bytes) -> Any:
    """Return the document of an event despite broken characters in it, which must not cost the whole reply.

    Undecodable bytes, and halves of surrogate pairs (an emoji that a server cut in two), become U+FFFD.
    """
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
        whole = json.dumps(document, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return json.loads(whole)
    except (ValueError, RecursionError):
        return None


UserSide: TypeAlias = UserMessage | SystemReminder | ToolResultMessage
"""Message between two replies."""


@dataclass(frozen=True, slots=True)
class WireGroup:
    """Messages as bytes of JSON, without a comma before or after."""

    data: bytes
    is_reply: bool


class WireHistory:
    """The wire form of one conversation for one model; each message is encoded once.

    On the wire a history is a sequence of groups: a reply, then everything until the next reply, which a provider may
    join into one message. A group before the newest reply keeps its bytes as long as the history grows at its end.
    Messages are compared by identity; if they are not the same as last time, everything is encoded again.

    Args:
        encode_reply: Returns a reply as JSON, or None if nothing of it can be sent; the groups around it then merge.
        encode_user_side: Returns the messages between two replies as JSON, joined into one or separated by commas; None
            if nothing of them can be sent.
    """

    def __init__(
        self,
        encode_reply: Callable[[AssistantMessage], bytes | None],
        encode_user_side: Callable[[Sequence[UserSide]], bytes | None],
    ) -> None:
        self._encode_reply = encode_reply
        self._encode_user_side = encode_user_side
        self._seen: list[Message] = []  # messages of the closed groups
        self._closed: list[WireGroup] = []
        self._tail: list[UserSide] = []  # the open messages of the last request, and their bytes
        self._tail_data: bytes | None = None

    def groups(self, messages: Sequence[Message]) -> list[WireGroup]:
        """Return the whole history as groups, oldest first."""
        if not self.extends(messages):
            self._seen, self._closed = [], []
        start = len(self._seen)
        groups = self._closed.copy()
        pending: list[UserSide] = []
        for position in range(start, len(messages)):
            message = messages[position]
            if not isinstance(message, AssistantMessage):
                pending.append(message)
                continue
            reply = self._encode_reply(message)
            if reply is None:
                continue
            self._add_user_side(groups, pending)
            pending = []
            groups.append(WireGroup(reply, is_reply=True))
            self._seen.extend(messages[len(self._seen) : position + 1])
        closed = len(groups)
        self._add_user_side(groups, pending)
        self._closed = groups[:closed]
        return groups

    def extends(self, messages: Sequence[Message]) -> bool:
        """Return True if the closed groups are the beginning of these messages."""
        seen = self._seen
        return len(seen) <= len(messages) and all(map(operator.is_, seen, messages))

    def _add_user_side(self, groups: list[WireGroup], messages: list[UserSide]) -> None:
        """Append the group of these messages; it is usually encoded already, as the end of the last request."""
        if not messages:
            return
        if len(messages) != len(self._tail) or not all(map(operator.is_, messages, self._tail)):
            self._tail, self._tail_data = messages, self._encode_user_side(messages)
        if self._tail_data is not None:
            groups.append(WireGroup(self._tail_data, is_reply=False))


MAX_CONVERSATIONS = 8
"""Number of conversations to remember; the least recently used one is dropped."""


class EncodeHead(Protocol):
    """Encodes a body up to its messages."""

    def __call__(
        self, options: ModelOptions, system: str, tools: Sequence[ToolDefinition], *, is_stream: bool
    ) -> bytes:
        """Return the bytes."""
        ...


@dataclass(slots=True)
class _Conversation:
    """The wire form of one conversation."""

    model: str
    first_message: object
    history: WireHistory


@dataclass(frozen=True, slots=True)
class _Head:
    """A body up to its messages, and the values that it was encoded from."""

    options: ModelOptions
    system: str
    tools: Sequence[ToolDefinition]
    is_stream: bool
    data: bytes

    def fits(self, request: ModelRequest, options: ModelOptions, is_stream: bool) -> bool:
        return (
            self.tools == request.tools
            and self.system == request.system
            and self.options == options
            and self.is_stream == is_stream
        )


class Prefix:
    """Cache of encoded requests of the few conversations that a provider serves, such as those of subagents.

    The cache only saves work: the bytes are the same as if everything was encoded again.

    Args:
        encode_head: Encodes a body up to its messages.
        new_history: Returns the empty history of a conversation with a model, given its name.
    """

    def __init__(self, *, encode_head: EncodeHead, new_history: Callable[[str], WireHistory]) -> None:
        self._encode_head = encode_head
        self._new_history = new_history
        self._heads: list[_Head] = []  # both lists have the newest at the end
        self._conversations: list[_Conversation] = []

    def of(self, request: ModelRequest, options: ModelOptions, *, is_stream: bool) -> tuple[bytes, list[WireGroup]]:
        """Return the head of the request's body, and its history."""
        return self._head(request, options, is_stream), self._history(request, options.model).groups(request.messages)

    def _head(self, request: ModelRequest, options: ModelOptions, is_stream: bool) -> bytes:
        for head in reversed(self._heads):
            if head.fits(request, options, is_stream):
                return head.data
        data = self._encode_head(options, request.system, request.tools, is_stream=is_stream)
        self._heads.append(_Head(options, request.system, request.tools, is_stream, data))
        del self._heads[:-MAX_CONVERSATIONS]
        return data

    def _history(self, request: ModelRequest, model: str) -> WireHistory:
        first = request.messages[0] if request.messages else None
        for position in range(len(self._conversations) - 1, -1, -1):
            known = self._conversations[position]
            if known.first_message is first and known.model == model:
                self._conversations.append(self._conversations.pop(position))
                return known.history
        history = self._new_history(model)
        self._conversations.append(_Conversation(model, first, history))
        del self._conversations[:-MAX_CONVERSATIONS]
        return history
