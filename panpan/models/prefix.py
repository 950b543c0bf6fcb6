"""Remembers the wire form of what a provider has sent, for the few conversations that it serves side by side.

A provider serves a session and its subagents, each with its own system prompt, tools and history. The rule: what is
remembered only saves work; the bytes are always those that encoding everything anew would give.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from panpan.models.wire_history import WireGroup, WireHistory
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition

MAX_CONVERSATIONS = 8
"""Conversations that are remembered; the one not used for longest goes first."""


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
    """A body up to its messages, and what it was encoded from."""

    options: ModelOptions
    system: str
    tools: Sequence[ToolDefinition]
    is_stream: bool
    data: bytes

    def fits(self, request: ModelRequest, options: ModelOptions, is_stream: bool) -> bool:
        return (
            self.tools is request.tools
            and self.system == request.system
            and self.options == options
            and self.is_stream == is_stream
        )


class Prefix:
    """What was sent before.

    Args:
        encode_head: Encodes a body up to its messages.
        new_history: Returns the empty history of a conversation with a model, given its name.
    """

    def __init__(self, *, encode_head: EncodeHead, new_history: Callable[[str], WireHistory]) -> None:
        self._encode_head = encode_head
        self._new_history = new_history
        self._heads: list[_Head] = []  # both lists: the newest at the end
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
