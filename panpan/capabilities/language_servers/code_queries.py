"""Questions of the LSP tool to a language server, in the terms of the protocol.

The rule: a server is asked only for what it can do. Its answers are read leniently (`wire.py`): what makes no sense is
left out.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.wire import Encoding, lines_of, units
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.language_servers.language_server import LanguageServer
    from panpan.capabilities.language_servers.wire import Diagnostic


Relation: TypeAlias = Literal["definition", "references", "implementations", "incoming_calls", "outgoing_calls"]
"""Relation that leads from one place in the code to others."""


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
    """Description of the place, such as "function main", in the server's own words."""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Places in a server's answer."""

    places: Sequence[CodePlace]
    note: str = ""
    """Caveat about the answer, such as that the server is still reading the project; usually empty."""


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
    """Changes that a server would make in one file."""

    path: Path
    changes: Sequence[TextChange]
    encoding: Encoding
    """Unit of `start` and `end` in the changes."""


MAX_PLACES = 2_000
MAX_CALL_ITEMS = 5
"""Functions of one name at one place, as with overloads."""

_STILL_READING = "the language server is still reading the project, so this may be incomplete"


class CodeQueries:
    """Asks the session's servers. All raise `ToolError`: no server for the file, or it cannot or will not answer."""

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers

    async def related(self, relation: Relation, point: CodePoint) -> Found:
        """Return the places that a relation leads to."""
        from panpan.capabilities.language_servers.wire import locations

        match relation:
            case "incoming_calls" | "outgoing_calls":
                return await self._calls(relation, point)
            case "definition":
                method, provider = "textDocument/definition", "definitionProvider"
            case "references":
                method, provider = "textDocument/references", "referencesProvider"
            case "implementations":
                method, provider = "textDocument/implementation", "implementationProvider"
        asked = await self._asked(point.path, provider)
        context = {"context": {"includeDeclaration": True}} if relation == "references" else {}
        answer = await asked.server.request(method, {**asked.position(point), **context})
        places = (_place(found.uri, found.range.start.line) for found in locations(answer))
        return asked.found(list(dict.fromkeys(places)))

    async def hover(self, point: CodePoint) -> str:
        """Return the server's text about a symbol, such as type and documentation; empty if it has none."""
        from panpan.capabilities.language_servers.wire import hover_text

        asked = await self._asked(point.path, "hoverProvider")
        return hover_text(await asked.server.request("textDocument/hover", asked.position(point)))

    async def symbols(self, path: Path) -> Found:
        """Return the symbols that a file defines, in its order."""
        asked = await self._asked(path, "documentSymbolProvider")
        answer = await asked.server.request("textDocument/documentSymbol", {"textDocument": {"uri": asked.uri}})
        return asked.found(list(islice(_symbols(answer, path, 0), MAX_PLACES)))

    async def symbols_named(self, query: str, path: Path) -> Found:
        """Return the symbols of the whole project whose names are like `query`.

        `path`: any file of the language.
        """
        asked = await self._asked(path, "workspaceSymbolProvider")
        answer = await asked.server.request("workspace/symbol", {"query": query})
        return asked.found(list(islice(_symbols(answer, path, 0), MAX_PLACES)))

    async def problems(self, path: Path) -> Sequence[Problem]:
        """Return the errors and warnings of a file."""
        server = await self._servers.server_for(path)
        await server.has_read_project()
        found = [problem_of(one) for one in await server.texts.problems_now(path) if one.severity in (None, 1, 2)]
        return sorted(found, key=lambda problem: (not problem.is_error, problem.line, problem.column))

    async def rename(self, point: CodePoint, new_name: str) -> Sequence[FileChanges]:
        """Return the changes that rename a symbol; nothing is changed yet."""
        asked = await self._asked(point.path, "renameProvider")
        params = {**asked.position(point), "newName": new_name}
        answer = await asked.server.request("textDocument/rename", params)
        return _file_changes(answer, asked.server)

    async def _calls(self, relation: Relation, point: CodePoint) -> Found:
        asked = await self._asked(point.path, "callHierarchyProvider")
        from panpan.capabilities.language_servers.wire import CallItem, Range, items_of, read_as

        answer = await asked.server.request("textDocument/prepareCallHierarchy", asked.position(point))
        method, end = ("incomingCalls", "from") if relation == "incoming_calls" else ("outgoingCalls", "to")
        places: dict[CodePlace, None] = {}
        for item in items_of(answer)[:MAX_CALL_ITEMS]:
            for call in items_of(await asked.server.request(f"callHierarchy/{method}", {"item": item})):
                other = read_as(CallItem, call.get(end)) if isinstance(call, dict) else None
                if other is None:
                    continue
                ranges = [found for one in items_of(call.get("fromRanges")) if (found := read_as(Range, one))]
                is_incoming = relation == "incoming_calls"
                lines = [one.start.line for one in ranges] if is_incoming else []
                label = f"in {other.name}" if is_incoming else other.name
                for line in lines or [other.selection.start.line]:
                    places[_place(other.uri, line, label)] = None
        return asked.found(list(places))

    async def _asked(self, path: Path, provider: str) -> "_Asked":
        """Return the server for a file, which is open in it as it is now.

        Raises:
            ToolError: There is none, or it does not do such things.
        """
        server = await self._servers.server_for(path)
        if not server.supports(provider):
            what = provider.removesuffix("Provider")
            raise ToolError(f"{server.kind.name} offers no {what}", advice="use Grep and Read in its place")
        document = await server.texts.opened(path)
        return _Asked(server, document.uri, document.text, has_read=await server.has_read_project())


class _Asked:
    """A server that is about to be asked, with the file that it is asked about."""

    def __init__(self, server: "LanguageServer", uri: str, text: str, *, has_read: bool) -> None:
        self.server = server
        self.uri = uri
        self._text = text
        self._has_read = has_read

    def position(self, point: CodePoint) -> dict[str, Any]:
        """Return the parameters that name a place. Raise ToolError if the file has no such line any more."""
        lines = lines_of(self._text)
        if point.line > len(lines):
            raise ToolError(f"{point.path.name} has {len(lines)} lines, and no line {point.line}")
        column = units(lines[point.line - 1][: point.column], self.server.encoding)
        return {"textDocument": {"uri": self.uri}, "position": {"line": point.line - 1, "character": column}}

    def found(self, places: Sequence[CodePlace]) -> Found:
        """Return an answer, bounded."""
        return Found(places[:MAX_PLACES], "" if self._has_read else _STILL_READING)


def _place(uri: str, line: int, label: str = "", depth: int = 0) -> CodePlace:
    from panpan.capabilities.language_servers.wire import path_of

    return CodePlace(path_of(uri) or uri, line + 1, label, depth)


def _symbols(answer: Any, path: Path, depth: int) -> Iterator[CodePlace]:
    """Yield the symbols of an answer in either of its forms, those in a symbol behind it."""
    from panpan.capabilities.language_servers.wire import (
        MAX_DEPTH,
        SYMBOL_KINDS,
        PlacedSymbol,
        Symbol,
        items_of,
        read_as,
    )

    for item in items_of(answer):
        symbol = read_as(Symbol, item)
        if symbol is not None:
            label = f"{SYMBOL_KINDS.get(symbol.kind, 'symbol')} {symbol.name}"
            yield CodePlace(path, symbol.selection.start.line + 1, label, depth)
            if depth < MAX_DEPTH:
                yield from _symbols(symbol.children, path, depth + 1)
        elif (placed := read_as(PlacedSymbol, item)) is not None:
            line = placed.location.range.start.line if placed.location.range else 0
            container = f" in {placed.container}" if placed.container else ""
            label = f"{SYMBOL_KINDS.get(placed.kind, 'symbol')} {placed.name}{container}"
            yield _place(placed.location.uri, line, label)


def _file_changes(answer: Any, server: "LanguageServer") -> Sequence[FileChanges]:
    """Return the edits of a `WorkspaceEdit`, file by file.

    Raises:
        ToolError: It is more than edits of files, or makes no sense: half of a rename is worse than none.
    """
    from panpan.capabilities.language_servers.wire import TextEdit, path_of, read_as

    name = server.kind.name
    by_path: dict[Path, list[TextChange]] = {}
    for uri, edits in _edited(answer, name):
        path = path_of(uri)
        if path is None:
            raise ToolError(f"{name} would change something that is not a file on this machine; nothing was changed")
        for edit in edits:
            read = read_as(TextEdit, edit)
            if read is None:
                raise ToolError(f"{name} answers with an invalid edit; nothing was changed")
            start, end = read.range.start, read.range.end
            change = TextChange(start.line, start.character, end.line, end.character, read.new_text)
            by_path.setdefault(path, []).append(change)
    return [FileChanges(path, changes, server.encoding) for path, changes in by_path.items()]


def _edited(answer: Any, name: str) -> Iterator[tuple[str, Sequence[Any]]]:
    answer = answer if isinstance(answer, dict) else {}
    documents, changes = answer.get("documentChanges"), answer.get("changes")
    if isinstance(documents, list):
        for one in documents:
            document, edits = (one.get("textDocument"), one.get("edits")) if isinstance(one, dict) else (None, None)
            uri = document.get("uri") if isinstance(document, dict) else None
            if not isinstance(uri, str) or not isinstance(edits, list):
                raise ToolError(f"{name} would do more than edit files, such as move one; nothing was changed")
            yield uri, edits
    elif isinstance(changes, dict):
        for uri, edits in changes.items():
            if not isinstance(edits, list):
                raise ToolError(f"{name} answers with an invalid edit; nothing was changed")
            yield uri, edits


def problem_of(found: "Diagnostic") -> Problem:
    """Return a server's diagnostic as a `Problem`."""
    code = found.code if isinstance(found.code, str | int) else ""
    start = found.range.start
    return Problem(start.line + 1, start.character + 1, found.is_error, found.message, str(code))
