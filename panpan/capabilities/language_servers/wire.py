"""Models of a server's answers, and conversion between its columns and characters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.errors import ToolError
from panpan.types.pattern import compile_late

# Servers count columns in UTF-8 bytes, UTF-16 units or characters (LSP 3.17, `positionEncodings`). The protocol says
# that a column inside a character means its beginning, and one behind the line means its end.

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_LINE_BREAK = compile_late(r"\r\n|\n|\r")
"""The only three line breaks of the protocol; a form feed or U+2028 does not end a line."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their breaks; a text that ends with one has an empty line behind it."""
    return _LINE_BREAK.split(text)


def line_starts(text: str) -> list[int]:
    """Return the index of the first character of each line."""
    return [0, *(found.end() for found in _LINE_BREAK.finditer(text))]


def units(text: str, encoding: Encoding) -> int:
    """Return the length of a text in the units of a server."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def characters(line: str, column: int, encoding: Encoding) -> int:
    """Return the number of characters of `line` before a column of a server."""
    if line.isascii() or encoding == "utf-32":
        return min(column, len(line))
    left = column
    for at, character in enumerate(line):
        left -= units(character, encoding)
        if left < 0:
            return at
    return len(line)


# A server may omit, add or garble anything. Skip each item that cannot be understood, without an error. The names are
# those of LSP 3.17.

MAX_ITEMS = 10_000
"""Most items that are read of one list."""
MAX_DEPTH = 20
"""Most levels of symbols within symbols."""


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, defer_build=True)


class Position(_Wire):
    """A place in a text."""

    line: int = Field(ge=0, le=2**31)
    character: int = Field(ge=0, le=2**31)


class Range(_Wire):
    """A part of a text."""

    start: Position
    end: Position


class Location(_Wire):
    """A place in a file."""

    uri: str = Field(max_length=10_000)
    range: Range


class LocationLink(_Wire):
    """The other form of it."""

    uri: str = Field(alias="targetUri", max_length=10_000)
    range: Range = Field(alias="targetSelectionRange")


class Diagnostic(_Wire):
    """A problem."""

    range: Range
    severity: int | None = None
    code: Any = None
    message: str

    @property
    def is_error(self) -> bool:
        """True for an error, and for a diagnostic without a severity."""
        return self.severity in (None, 1)


class Symbol(_Wire):
    """A symbol in a file that is known (`DocumentSymbol`)."""

    name: str
    kind: int = 0
    selection: Range = Field(alias="selectionRange")
    children: list[Any] = Field(default_factory=list)


class _UriOnly(_Wire):
    uri: str = Field(max_length=10_000)
    range: Range | None = None


class PlacedSymbol(_Wire):
    """A symbol somewhere (`SymbolInformation`, `WorkspaceSymbol`)."""

    name: str
    kind: int = 0
    location: _UriOnly
    container: str | None = Field(default=None, alias="containerName")


class CallItem(_Wire):
    """A function in the hierarchy of calls."""

    name: str
    uri: str = Field(max_length=10_000)
    selection: Range = Field(alias="selectionRange")


class TextEdit(_Wire):
    """A change of a text."""

    range: Range
    new_text: str = Field(alias="newText")


ModelT = TypeVar("ModelT", bound=BaseModel)


def read_as(model: type[ModelT], value: Any) -> ModelT | None:
    """Return a value as a model; None if it does not fit."""
    try:
        return model.model_validate(value)
    except (ValidationError, RecursionError):
        return None


def items_of(value: Any) -> Sequence[Any]:
    """Return the items of a list; nothing for what is none, as null."""
    return value[:MAX_ITEMS] if isinstance(value, list) else ()


def locations(answer: Any) -> Iterator[Location | LocationLink]:
    """Yield the places of an answer, which is one, a list of them, or a list of links."""
    for item in items_of(answer) if isinstance(answer, list) else (answer,):
        found = read_as(Location, item) or read_as(LocationLink, item)
        if found is not None:
            yield found


def diagnostics(items: Any) -> list[Diagnostic]:
    """Return the problems of a list."""
    return [found for item in items_of(items) if (found := read_as(Diagnostic, item)) is not None]


def hover_text(answer: Any) -> str:
    """Return the text of a hover: `MarkupContent`, a `MarkedString`, or a list of these."""
    contents = answer.get("contents") if isinstance(answer, Mapping) else None
    parts = contents if isinstance(contents, list) else [contents]
    texts = [part.get("value") if isinstance(part, Mapping) else part for part in parts]
    return "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())


def encoding_of(capabilities: Mapping[str, Any]) -> Encoding:
    """Return the unit of the server's columns; UTF-16 if it names none, or one that was not offered."""
    chosen = capabilities.get("positionEncoding")
    return "utf-8" if chosen == "utf-8" else "utf-32" if chosen == "utf-32" else "utf-16"


def path_of(uri: str) -> Path | None:
    """Return the file that an address of a server means, as written; None where it means none of this machine."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    text = unquote(parts.path, errors="surrogateescape")
    is_file = parts.scheme == "file" and parts.netloc in ("", "localhost") and text.startswith("/")
    return Path(text) if is_file and "\0" not in text else None


_KINDS = """
    file module namespace package class method property field constructor enum interface function variable constant
    string number boolean array object key null enum-member struct event operator type-parameter
"""
SYMBOL_KINDS: Mapping[int, str] = dict(enumerate(_KINDS.split(), 1))
"""Kinds of symbols by the protocol's numbers."""


_MOST_LINES = 8


def find_symbol(lines: Sequence[str], symbol: str, line: int | None, shown: str) -> tuple[int, int]:
    """Return the line and column of a symbol, which has to be a word of its own there.

    `symbol`: a name; of one with dots, such as `module.name`, the last part is meant. `line`: from 1; None: the first
    line that has it.

    Returns:
        The line, from 1, and how many characters of it come before the symbol.

    Raises:
        ToolError: It is not there; the text says where it is.
    """
    whole = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    found = {number: match for number, text in enumerate(lines, 1) if (match := whole.search(text))}
    at = next(iter(found), None) if line is None else line
    match = found.get(at) if at is not None else None
    if at is None or match is None:
        raise ToolError(_missing(symbol, line, shown, list(found), len(lines)))
    last = re.search(r"\w+\W*$", symbol)
    return at, match.start() + (last.start() if last else 0)


def _missing(symbol: str, line: int | None, shown: str, found: Sequence[int], count: int) -> str:
    if not found:
        return f"{symbol} is not in {shown} as a whole word; Read the file, or find the symbol with Grep"
    if line is not None and line > count:
        there = f"{shown} has {count} lines, and no line {line}"
    else:
        there = f"line {line} of {shown} has no {symbol}"
    more = ", …" if len(found) > _MOST_LINES else ""
    return f"{there}; it is in line {', '.join(map(str, found[:_MOST_LINES]))}{more}"
