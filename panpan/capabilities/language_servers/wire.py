"""What is read of a server's answers.

The rule: a server may leave out, add or garble what it likes; what is not understood is left out, one item at a time,
and never an error. The names are those of LSP 3.17.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.capabilities.language_servers.columns import Encoding

MAX_ITEMS = 10_000
"""Of one list."""
MAX_DEPTH = 20
"""Of symbols in symbols."""


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


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
        """Whether it is one; so are those of which the server does not say what they are."""
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
    """Return what a value says; None where it is something else."""
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
    """Return what the server counts columns in; UTF-16 where it says nothing, or something that nobody offered."""
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
"""As the protocol numbers them."""
