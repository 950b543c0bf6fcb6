"""What the LSP tool needs of whoever keeps language servers.

The rule: lines count from 1 and columns are characters of the line, whatever a server counts in; only edits keep the
server's own units, since they are turned into text together with the very bytes that are changed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from panpan.capabilities.language_servers.wire import Encoding
from panpan.types.dataclass import dataclass

Relation: TypeAlias = Literal["definition", "references", "implementations", "incoming_calls", "outgoing_calls"]
"""What leads from one place in the code to others."""


@dataclass(frozen=True, slots=True)
class CodePoint:
    """A place that is asked about."""

    path: Path
    """Canonical; a file of the project."""
    line: int
    """From 1."""
    column: int
    """Characters of the line before it."""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A line that a server names; nobody has looked whether there is such a file, or whether it may be read."""

    place: Path | str
    """The file; a text where it is none, such as a library inside of the server."""
    line: int
    """From 1."""
    label: str = ""
    """What is there, such as "function main"; the server's words, as they came."""
    depth: int = 0
    """How many symbols it lies in."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a server answered."""

    places: Sequence[CodePlace]
    note: str = ""
    """What one should know of the answer, such as that the server is still reading the project; mostly nothing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning of a server about one line."""

    line: int
    """From 1."""
    column: int
    """From 1, in the server's units; to read only."""
    is_error: bool
    message: str
    """The server's words, as they came."""
    code: str = ""
    """Its name for this kind of problem."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """One edit of a file, in the units of a server."""

    start_line: int
    """From 0, as the server counts."""
    start: int
    end_line: int
    end: int
    new_text: str


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What a server would change in one file."""

    path: Path
    changes: Sequence[TextChange]
    encoding: Encoding
    """What `start` and `end` count."""


class CodeIntelligence(Protocol):
    """Answers from language servers. All raise `ToolError`: no server for the file, or it cannot or will not answer."""

    async def related(self, relation: Relation, point: CodePoint) -> Found:
        """Return where a relation leads to."""
        ...

    async def hover(self, point: CodePoint) -> str:
        """Return what the server tells about a symbol, such as type and documentation; empty for nothing."""
        ...

    async def symbols(self, path: Path) -> Found:
        """Return what is defined in a file, in its order."""
        ...

    async def symbols_named(self, query: str, path: Path) -> Found:
        """Return the symbols of the whole project whose names are like `query`.

        Args:
            query: A name or a part of one.
            path: Any file of the language.
        """
        ...

    async def problems(self, path: Path) -> Sequence[Problem]:
        """Return the errors and warnings of a file."""
        ...

    async def rename(self, point: CodePoint, new_name: str) -> Sequence[FileChanges]:
        """Return what would have to be changed to give a symbol another name; nothing is changed."""
        ...
