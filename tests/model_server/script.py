"""Script of the model server: replies and faults, one for each request, in order.

Plain data that knows neither dialect; `anthropic_wire` and `openai_wire` put it on the wire. Nothing here imports
panpan, so that a mistake in panpan cannot hide in the server that tests it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, TypeAlias

from tests.model_server.recording import RecordedRequest

Position: TypeAlias = int | Literal["text", "tool_arguments"]
"""Position in a reply: a number of events (negative: counted from the end), or the middle of the first block of text or
of the arguments of the first tool call."""

Quirk: TypeAlias = Literal[
    "no_tool_ids", "no_tool_indexes", "no_usage", "no_finish_reason", "no_done", "whole_tool_calls", "interleaved"
]
"""Difference of a server with the chat completions dialect from OpenAI's."""


@dataclass(frozen=True)
class Text:
    """A block of text."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """A block of thinking; its signature is sent in the Anthropic dialect only."""

    thinking: str
    signature: str = "c2lnbmF0dXJl"


@dataclass(frozen=True)
class RedactedThinking:
    """Encrypted thinking, of the Anthropic dialect only."""

    data: str


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. `arguments` replaces the JSON of `input`, to send malformed JSON."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    """None: the server makes a unique id."""
    arguments: str | None = None


Block: TypeAlias = Text | Thinking | RedactedThinking | ToolCall


@dataclass(frozen=True)
class Tokens:
    """Tokens that the server reports for the request and its reply."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True)
class Cut:
    """The connection ends in the middle of the reply.

    Args:
        at: Position of the end.
        how: "close" leaves the body unfinished, "reset" resets the connection, "clean" ends the body as
            if it were whole.
    """

    at: Position
    how: Literal["close", "reset", "clean"] = "close"


@dataclass(frozen=True)
class Stall:
    """The server stops sending: for a time, or until the client leaves or the server is stopped."""

    at: Position
    seconds: float | None = None


@dataclass(frozen=True)
class Hold:
    """The server stops sending at `at` until the test sets the event.

    For scripts of this process only; a script in a file has `Stall`.
    """

    at: Position
    until: Event


@dataclass(frozen=True)
class StreamFailure:
    """The server sends an error in the stream, and then ends it. The kinds are those of the Messages API."""

    at: Position
    kind: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True)
class Inject:
    """The server sends something unexpected between two events, and the reply goes on.

    `what` is "malformed" (data that is no JSON), "unknown" (an event of a type that does not exist), "ping", "comment",
    or the bytes themselves.
    """

    at: Position
    what: Literal["malformed", "unknown", "ping", "comment"] | bytes


Fault: TypeAlias = Cut | Stall | Hold | StreamFailure | Inject


@dataclass(frozen=True)
class Reply:
    """A reply that streams."""

    blocks: tuple[Block, ...] = ()
    stop_reason: str | None = None
    """In the words of the Messages API; None: "tool_use" or "end_turn", whichever fits the blocks."""
    tokens: Tokens = Tokens()
    chunk_chars: int = 8
    """Characters of a delta; 0: each block in one delta."""
    writes: Literal["events", "bulk"] | int = "events"
    """Writes: each event on its own, as many as possible at once, or pieces of so many bytes (splits characters)."""
    first_delay_s: float = 0
    """Pause before the first event, after the headers."""
    delta_delay_s: float = 0
    """Pause before every other event."""
    faults: tuple[Fault, ...] = ()
    quirks: frozenset[Quirk] = frozenset()
    message_id: str | None = None
    model: str | None = None
    """Name of the model in the reply; None: the requested one."""

    @property
    def effective_stop_reason(self) -> str:
        """Stop reason that is sent."""
        if self.stop_reason is not None:
            return self.stop_reason
        return "tool_use" if any(isinstance(block, ToolCall) for block in self.blocks) else "end_turn"


@dataclass(frozen=True)
class HttpError:
    """The request is answered with an error before anything streams.

    Args:
        status: HTTP status.
        message: Text of the error; None: the usual one of the status.
        kind: Type of the error in the body; None: the usual one of the status.
        code: Code of the error, which the chat completions dialect has beside the type.
        headers: Further headers, such as retry-after.
        body: The whole body in place of the usual JSON, such as a proxy's HTML page.
    """

    status: int
    message: str | None = None
    kind: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Hangup:
    """The connection is closed before any header; "reset" resets it."""

    how: Literal["close", "reset"] = "close"


Step: TypeAlias = Reply | HttpError | Hangup
"""The answer to one request."""

Script: TypeAlias = Iterable[Step] | Callable[[RecordedRequest], Step]
"""Steps in order (may be endless), or a function that answers each request."""


def say(text: str, **options: Any) -> Reply:
    """Return a reply of text; `options` are fields of `Reply`."""
    return Reply((Text(text),), **options)


def call(name: str, input: Mapping[str, Any] | None = None, /, **options: Any) -> Reply:  # noqa: A002
    """Return a reply that calls one tool; `options` are fields of `Reply`."""
    return Reply((ToolCall(name, input or {}),), **options)


def calls(*tool_calls: ToolCall, text: str = "", **options: Any) -> Reply:
    """Return a reply that calls several tools, after `text`; `options` are fields of `Reply`."""
    blocks: tuple[Block, ...] = (Text(text), *tool_calls) if text else tool_calls
    return Reply(blocks, **options)
