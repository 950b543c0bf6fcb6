"""Messages of panpan fit the protocol's own types, and messages made of those types are read."""

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import converters, types

from panpan.capabilities.language_servers.code_queries import CodePoint, CodeQueries
from panpan.capabilities.language_servers.wire import (
    CallItem,
    PlacedSymbol,
    Symbol,
    TextEdit,
    diagnostics,
    hover_text,
    locations,
    path_of,
    read_as,
)
from tests.capabilities.language_servers.toy import ToyProject, served

CONVERTER = converters.get_converter()
SPOT = types.Range(types.Position(1, 2), types.Position(1, 5))


def sent(value: Any) -> Any:
    """Return a value of the protocol's types as it comes in a message."""
    return CONVERTER.unstructure(value)


@pytest.fixture
def project(tmp_path: Path) -> ToyProject:
    return ToyProject(tmp_path.resolve())


@pytest.mark.parametrize("faults", [(), ("publishes", "asks")])
async def test_sent_messages_fit_the_protocol_types(project: ToyProject, faults: tuple[str, ...]) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers(*faults)) as servers:
        queries, point = CodeQueries(servers), CodePoint(path, 1, 0)
        await queries.related("definition", point)
        await queries.related("references", point)
        await queries.hover(point)
        await queries.symbols(path)
        await queries.symbols_named("a", path)
        await queries.problems(path)
        await queries.rename(point, "omega")
        project.put("b.toy", "beta\n")
        project.put("a.toy", "changed alpha\n")
        await queries.hover(point)

    messages = [one for name in types.METHOD_TO_TYPES for one in project.messages(name)]
    for message in messages:
        CONVERTER.structure(message, types.METHOD_TO_TYPES[message["method"]][0])
    methods = {message["method"] for message in messages}
    assert {"initialize", "initialized", "shutdown", "exit", "textDocument/didOpen"} < methods
    assert {"textDocument/didChange", "textDocument/didSave", "workspace/didChangeWatchedFiles"} < methods
    assert len(methods) >= 14


def test_places_are_read_in_each_form() -> None:
    one = types.Location("file:///a.py", SPOT)
    link = types.LocationLink(target_uri="file:///b.py", target_range=SPOT, target_selection_range=SPOT)

    found = [[place.uri for place in locations(sent(answer))] for answer in (one, [one, one], [link], None, [])]

    assert found == [["file:///a.py"], ["file:///a.py"] * 2, ["file:///b.py"], [], []]


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (types.MarkupContent(types.MarkupKind.Markdown, "**x**"), "**x**"),
        (types.MarkedStringWithLanguage("python", "x: int"), "x: int"),
        (["one", types.MarkedStringWithLanguage("python", "two")], "one\n\ntwo"),
        ("plain", "plain"),
        ([], ""),
    ],
)
def test_hover_is_read_in_each_form(contents: Any, text: str) -> None:
    assert hover_text(sent(types.Hover(contents))) == text


def test_symbols_calls_edits_and_problems_are_read() -> None:
    inner = types.DocumentSymbol("inner", types.SymbolKind.Method, SPOT, SPOT)
    outer = types.DocumentSymbol("outer", types.SymbolKind.Class, SPOT, SPOT, children=[inner])
    placed = types.SymbolInformation(types.Location("file:///a", SPOT), "name", types.SymbolKind.Class)
    somewhere = types.WorkspaceSymbol(types.LocationUriOnly("file:///a"), "name", types.SymbolKind.Class)
    item = types.CallHierarchyItem("f", types.SymbolKind.Function, "file:///a", SPOT, SPOT)
    problem = types.Diagnostic(SPOT, "bad", severity=types.DiagnosticSeverity.Error, code=7)
    unclear = types.Diagnostic(SPOT, "unclear")

    symbol = read_as(Symbol, sent(outer))
    assert symbol is not None
    assert read_as(Symbol, symbol.children[0]) is not None
    assert [read_as(PlacedSymbol, sent(one)) is None for one in (placed, somewhere)] == [False, False]
    assert read_as(CallItem, sent(item)) is not None
    assert read_as(TextEdit, sent(types.AnnotatedTextEdit(annotation_id="a", range=SPOT, new_text="x"))) is not None
    assert [(one.message, one.is_error, one.code) for one in diagnostics(sent([problem, unclear]))] == [
        ("bad", True, 7),
        ("unclear", True, None),
    ]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c.py", "/a/b c.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file:///%E6%BC%A2.py", "/漢.py"),
        ("file://elsewhere/a.py", None),
        ("http://example.org/a.py", None),
        ("untitled:a.py", None),
        ("file:///a%00b", None),
        ("file://[", None),
        ("", None),
    ],
)
def test_address_is_a_local_file_or_none(uri: str, path: str | None) -> None:
    assert path_of(uri) == (Path(path) if path else None)
