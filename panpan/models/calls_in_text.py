"""Calls of tools that a model wrote as text and its server did not recognise.

Only models that are known for this are read so (`VendorProfile.calls_in_text`). The rule is strict, since everything
that passes it runs: a reply is calls if the WHOLE of its text is one call or several, with nothing but white space
around them. A call is

- a JSON object, bare, or with others in a fence (three backticks, nothing or `json` after them, on lines of their own)
  or between the tags `<tool_call>` or `<tools>`;
- with the keys `name` and `arguments`, in either order, and no other;
- whose name is one of the tools that the request offered, exactly;
- whose arguments are an object that would pass as the arguments of a native call (`tool_arguments`), in which no key
  comes twice and no number is NaN or infinite.

Every other text stays text, byte for byte: a word before or after it, a list, another key, an unknown tool, a fence
that is not closed, arguments in quotes. So does the text of a reply that the output limit cut off or that was refused,
of one that has a native call as well, and of one longer than `MAX_CHARS`.

The rule cannot tell a call from an example: if a user asks the model to show a call of an existing tool and nothing
else, the call runs. It goes through the same permissions as any other.
"""

import json
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

from pydantic_core import from_json

from panpan.models.reply import BlockKind, OpenBlock, ReplyBuilder, encode_arguments, read_arguments
from panpan.types.dataclass import dataclass
from panpan.types.messages import StopReason

MAX_CHARS = 1024 * 1024
"""Longest text that is read as calls; the models that write so would need hours for it."""

_FENCE = "```"
_TAGS = ("tool_call", "tools")
_BLANKS = " \t\r\n"
_KEYS = frozenset({"name", "arguments"})
_UNREADABLE = (ValueError, TypeError)  # a TypeError means that a text contains half of a surrogate pair
_WITHOUT_CONTROLS = {code: " " for code in range(32)}


@dataclass(frozen=True, slots=True)
class CallInText:
    """One call."""

    name: str
    arguments: str
    """A JSON object, as text."""


def read_calls(text: str, tool_names: AbstractSet[str]) -> tuple[CallInText, ...]:
    """Return the calls in `text`; empty if it has anything else."""
    try:
        return _Reader(text, tool_names).read()
    except (_NotYetError, _NeverError):
        return ()


def can_become_calls(text: str, tool_names: AbstractSet[str]) -> bool:
    """Return True if `read_calls` may return some, now or when more has been added to `text`.

    False is always right. True may be wrong for a while, but only inside an object.
    """
    try:
        _Reader(text, tool_names).read()
    except _NotYetError:
        return True
    except _NeverError:
        return False
    return True


class CallReadingBuilder(ReplyBuilder):
    """A `ReplyBuilder` that holds text back as long as it can become calls, and emits the calls if it does.

    Text that cannot become calls is emitted at once, together with the text that was held back.

    Args:
        model: The model's name in the request.
        tool_names: The tools that the request offered.
        taken_ids: Ids of calls that the conversation already has.
    """

    def __init__(self, *, model: str, tool_names: AbstractSet[str], taken_ids: AbstractSet[str] = frozenset()) -> None:
        super().__init__(model=model, taken_ids=taken_ids)
        self._tool_names = tool_names
        self._is_holding = True
        self._held: list[str] = []
        self._held_chars = 0
        self._next_look = 0  # length of the next check; it grows by an eighth, so that long text costs linear time

    def add(self, kind: BlockKind, piece: str) -> None:
        if not self._is_holding:
            super().add(kind, piece)
        elif kind == "text":
            self._hold(piece)
        else:
            if self._held:
                self._release()  # the reply is more than this text
            super().add(kind, piece)

    def open_block(self, kind: BlockKind, *, tool_use_id: str = "", tool_name: str = "") -> OpenBlock:
        if kind == "tool_use":
            self._release()
        return super().open_block(kind, tool_use_id=tool_use_id, tool_name=tool_name)

    def finish(self, stop_reason: StopReason | None) -> None:
        calls: tuple[CallInText, ...] = ()
        if self._is_holding and stop_reason in ("end_turn", "tool_use", None):
            calls = read_calls("".join(self._held), self._tool_names)
        if calls:
            self._held.clear()
            stop_reason = "tool_use"
        self._release()
        for call in calls:
            self.open_block("tool_use", tool_name=call.name).parts.append(call.arguments)
        super().finish(stop_reason)

    def _hold(self, piece: str) -> None:
        if not self._held:
            self.close_block()  # the thinking is over
        self._held.append(piece)
        self._held_chars += len(piece)
        if self._held_chars < self._next_look:
            return
        self._next_look = self._held_chars + self._held_chars // 8
        if not can_become_calls("".join(self._held), self._tool_names):
            self._release()

    def _release(self) -> None:
        """Emit the text that was held back, and hold back no more."""
        self._is_holding = False
        if self._held:
            super().add("text", "".join(self._held))
            self._held.clear()


class _NotYetError(Exception):
    """The text ends too early."""


class _NeverError(Exception):
    """The text is no calls, whatever follows."""


class _Reader:
    """Reader that goes through a text once."""

    def __init__(self, text: str, tool_names: AbstractSet[str]) -> None:
        self._text = text
        self._tool_names = tool_names
        self._at = 0

    def read(self) -> tuple[CallInText, ...]:
        """Return the calls; empty for white space.

        Raises:
            _NotYetError: The text ends inside a call or a group of them.
            _NeverError: It is something else.
        """
        if len(self._text) > MAX_CHARS:
            raise _NeverError
        calls: list[CallInText] = []
        while self._skip_blanks():
            closing = self._opening()
            calls.append(self._call())
            while closing and not self._takes_after_blanks(closing):
                calls.append(self._call())
        return tuple(calls)

    def _opening(self) -> str:
        """Go past the opening of a group of calls and return its closing; empty before a bare call."""
        for tag in _TAGS:
            if self._takes(f"<{tag}>"):
                self._skip_blanks()
                return f"</{tag}>"
        if not self._takes(_FENCE):
            return ""
        line, line_end, _ = self._text[self._at :].partition("\n")
        label = line.strip(_BLANKS)
        if not line_end and "json".startswith(label):
            raise _NotYetError
        if label not in ("", "json"):
            raise _NeverError
        self._at += len(line) + 1
        self._skip_blanks()
        return _FENCE

    def _call(self) -> CallInText:
        """Go past one object and return its call."""
        if not self._text.startswith("{", self._at):
            raise _NotYetError if self._at == len(self._text) else _NeverError
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except RecursionError:
            raise _NeverError from None
        except ValueError:
            self._judge_beginning()
        if value.keys() != _KEYS or not isinstance(value["name"], str) or value["name"] not in self._tool_names:
            raise _NeverError
        arguments = encode_arguments(value["arguments"])
        try:
            read_arguments(arguments)  # only accepts an object
        except _UNREADABLE:
            raise _NeverError from None
        return CallInText(value["name"], arguments)

    def _judge_beginning(self) -> NoReturn:
        """Raise the error for an incomplete object that can, or can no longer, become a call."""
        rest = self._text[self._at :].translate(_WITHOUT_CONTROLS)  # json.loads refuses them in strings
        try:
            value = from_json(rest, allow_inf_nan=False, allow_partial="trailing-strings")
        except _UNREADABLE:
            raise _NeverError from None
        name, arguments = value.get("name", ""), value.get("arguments", {})
        is_name = isinstance(name, str) and any(known.startswith(name) for known in self._tool_names)
        if is_name and isinstance(arguments, dict) and value.keys() <= _KEYS:
            raise _NotYetError
        raise _NeverError

    def _takes(self, literal: str) -> bool:
        """Go past `literal` if it comes next."""
        if self._text.startswith(literal, self._at):
            self._at += len(literal)
            return True
        if literal.startswith(self._text[self._at : self._at + len(literal)]):
            raise _NotYetError
        return False

    def _takes_after_blanks(self, literal: str) -> bool:
        self._skip_blanks()
        return self._takes(literal)

    def _skip_blanks(self) -> bool:
        """Go past white space; return True if anything follows."""
        while self._at < len(self._text) and self._text[self._at] in _BLANKS:
            self._at += 1
        return self._at < len(self._text)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NeverError
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_no_key_twice, strict=False)
