"""Puts parallel tool calls together from the deltas of a chat completions stream.

By the documentation a call has an index, comes with id and name first, and then in pieces of its arguments. Servers
leave out each of these, repeat id and name in every delta, make up a new id for each, count every call 0, send
arguments whole or as an object, or mix the pieces of several calls. The rule: calls are told of one after the other.
A later one waits until the arguments of those before are a whole JSON object, which nothing can add to, or until the
reply ends.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeGuard

from panpan.errors import StreamError
from panpan.models.reply import OpenBlock, ReplyBuilder
from panpan.models.tool_arguments import ArgumentsError, read_arguments, written
from panpan.models.wire_json import text_in
from panpan.types.dataclass import dataclass


@dataclass(slots=True)
class _Call:
    """A call that is still coming."""

    wire_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    block: OpenBlock | None = None
    """Set when the call has been told of; its pieces are then the block's."""

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a JSON object, so that nothing more can come."""
        text = self.arguments
        if not text.rstrip().endswith("}"):
            return False
        try:
            read_arguments(text)
        except ArgumentsError:
            return False
        return True


class CallAssembler:
    """The calls of one reply.

    Args:
        builder: Told of the calls, in order.
        provider: Name for messages.
        names: Names of tools by what they are called on the wire, where the two differ.
    """

    def __init__(self, builder: ReplyBuilder, *, provider: str, names: Mapping[str, str]) -> None:
        self._builder = builder
        self._provider = provider
        self._names = names
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._current = 0  # position of the call that is told of now; those after it wait

    @property
    def has_calls(self) -> bool:
        """Whether any call has come."""
        return bool(self._calls)

    def add(self, delta: dict[str, Any]) -> None:
        """Add one entry of `delta.tool_calls`.

        Raises:
            StreamError: More arguments come for a call that was whole and may have started.
        """
        function = delta.get("function")
        if not isinstance(function, dict):
            function = {}
        wire_id, name = text_in(delta.get("id")), text_in(function.get("name"))
        call = self._find(delta.get("index"), wire_id, name)
        if call is None:
            call = self._begin(delta.get("index"), wire_id, name)
        elif name and name != call.name and not call.pieces:
            call.name += name  # a name in pieces
            if call.block is not None:
                call.block.tool_name = self._names.get(call.name, call.name)
        self._add_arguments(call, _arguments(function.get("arguments")))

    def finish(self) -> None:
        """Tell of all the calls that still wait; nothing more comes."""
        while self._current < len(self._calls):
            self._tell(self._calls[self._current])
            self._builder.close_block()
            self._current += 1

    def _find(self, index: object, wire_id: str, name: str) -> _Call | None:
        """Return the call that a delta goes on with; None where it begins a new one."""
        if _is_number(index):
            call = self._by_index.get(index)
            if call is None:
                return None
        elif not self._calls:
            return None
        else:
            known = (call for call in self._calls if wire_id and call.wire_id == wire_id)
            call = next(known, self._calls[-1])
        return None if _begins_another(call, wire_id, name) else call

    def _begin(self, index: object, wire_id: str, name: str) -> _Call:
        call = _Call(wire_id, name)
        self._calls.append(call)
        if _is_number(index):
            self._by_index[index] = call
        self._advance()
        return call

    def _advance(self) -> None:
        """Tell of the next calls as far as those before them are whole."""
        while self._current < len(self._calls):
            call = self._calls[self._current]
            self._tell(call)
            if self._current == len(self._calls) - 1 or not call.is_whole:
                return
            self._builder.close_block()
            self._current += 1

    def _tell(self, call: _Call) -> None:
        if call.block is None:
            name = self._names.get(call.name, call.name)
            call.block = self._builder.open_block("tool_use", tool_use_id=call.wire_id, tool_name=name)
            call.block.parts.extend(call.pieces)
            call.pieces = call.block.parts

    def _add_arguments(self, call: _Call, piece: str) -> None:
        if not piece:
            return
        is_told_and_over = call.block is not None and call is not self._calls[self._current]
        if is_told_and_over:
            if piece.isspace():
                return
            raise StreamError(
                f"{self._provider} sent more arguments for a call that was complete", provider=self._provider
            )
        call.pieces.append(piece)
        if len(self._calls) > self._current + 1 and call.block is not None and piece.rstrip().endswith("}"):
            self._advance()


def _begins_another(call: _Call, wire_id: str, name: str) -> bool:
    """Whether a delta that seems to be of `call` begins another call."""
    if not name:
        return False  # a new id alone: some servers make one up for every delta
    if wire_id and call.wire_id and wire_id != call.wire_id:
        return True
    if wire_id and wire_id == call.wire_id:
        return False
    return call.is_whole  # no ids to tell by


def _is_number(index: object) -> TypeGuard[int]:
    return isinstance(index, int) and not isinstance(index, bool)


def _arguments(value: object) -> str:
    """Return a piece of arguments as text; some servers send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else written(value)
