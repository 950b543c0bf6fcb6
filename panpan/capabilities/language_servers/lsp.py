"""LSP: ask a language server about code, or have it rename a symbol everywhere."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Literal

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.language_servers.code_queries import (
    CodePlace,
    CodePoint,
    CodeQueries,
    FileChanges,
    Found,
    Problem,
    Relation,
    TextChange,
)
from panpan.capabilities.language_servers.wire import Encoding, characters, find_symbol, line_starts, lines_of, units
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.commit import FileChange, Target, find_target
from panpan.editing.planned_edit import EditReport, Plan, PlannedTool, content_of
from panpan.errors import ToolError
from panpan.system.files.canonical import is_below
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import FileText, decode_file
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, printable
from panpan.text_search.engine import cut_line, with_notes
from panpan.types.content import SummaryDisplay
from panpan.types.dataclass import dataclass
from panpan.types.events import Output

# A server may lie or know an older file. So its edits apply to the present bytes, each must replace the old name by the
# new one, and one senseless edit refuses them all.

MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class _Edit:
    """An edit in characters of the whole text."""

    start: int
    end: int
    new_text: str


def plan_code_rename(old_name: str, new_name: str, files: Sequence[FileChanges], ctx: ToolContext) -> Plan:
    """Return the changes that a rename is; synchronous.

    Raises:
        ToolError: A file may not or cannot be changed, or an edit makes no sense; nothing is changed then.
    """
    if not files:
        raise ToolError(f"the language server finds nothing to change for {old_name}; no file was changed")
    if len(files) > MAX_FILES:
        raise ToolError(f"the rename would change {len(files)} files, and at most {MAX_FILES} are; no file was changed")
    changes, reports = [], []
    for file in files:
        target = find_target(str(file.path), ctx)
        before, text = content_of(target, ctx)
        edits = _edits(text.text, file, target)
        for edit in edits:
            if old_name not in text.text[edit.start : edit.end] or new_name not in edit.new_text:
                raise _stale(target, f"would change a text without {old_name}, or into one without {new_name}")
            text.encoding.check(edit.new_text, target.shown)
        after = FileText(_applied(text.text, edits), text.encoding)
        changes.append(FileChange(target, before, text.encoding.encode(after.text)))
        count = f"{len(edits)} place{'s' * (len(edits) > 1)}"
        done = f"renamed {old_name} to {new_name} in {target.shown}: {count}"
        reports.append(EditReport(done, target.shown, text.readable, after.readable, is_echoed=True))
    return Plan(changes, reports)


def _edits(text: str, file: FileChanges, target: Target) -> Sequence[_Edit]:
    """Return the edits of one file in the order of the text, each in characters."""
    lines, starts = lines_of(text), line_starts(text)

    def offset(line: int, column: int) -> int:
        if line == len(lines) and column == 0:
            return len(text)  # some servers name the end like this
        if line >= len(lines) or column > units(lines[line], file.encoding):
            raise _stale(target, f"names line {line + 1}, column {column}, which is not there")
        return starts[line] + _whole(lines[line], column, file.encoding, target)

    edits = sorted((_placed(change, offset) for change in file.changes), key=lambda edit: (edit.start, edit.end))
    edits = list(dict.fromkeys(edits))
    if any(later.start < earlier.end for earlier, later in pairwise(edits)):
        raise _stale(target, "changes the same text twice")
    return edits


def _placed(change: TextChange, offset: Callable[[int, int], int]) -> _Edit:
    return _Edit(offset(change.start_line, change.start), offset(change.end_line, change.end), change.new_text)


def _whole(line: str, column: int, encoding: Encoding, target: Target) -> int:
    """Return the characters before a column that lies between two of them."""
    found = characters(line, column, encoding)
    if units(line[:found], encoding) != column:
        raise _stale(target, "names a place inside of a character")
    return found


def _applied(text: str, edits: Sequence[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += (text[at : edit.start], edit.new_text)
        at = edit.end
    return "".join([*parts, text[at:]])


def _stale(target: Target, why: str) -> ToolError:
    return ToolError(
        f"the language server {why} in {target.shown}, so it does not know the file as it is; no file was changed",
        advice="call it again, or use Rename with the files that the operation references names",
    )


# A server may name any file. If it may not be read, show only its name. Clean and shorten the server's words.

MAX_RESULTS = 100
MAX_HOVER_CHARS = 4_000
_MAX_FILE_BYTES = 2_000_000
_MAX_LABEL_CHARS = 200
_INDENT = "  "


class PlaceLines:
    """Puts the lines of places into words; each file is read once. Synchronous."""

    def __init__(self, ctx: ToolContext, withholds: Callable[[Path, Path], bool]) -> None:
        self._ctx = ctx
        self._withholds = withholds
        self._known: dict[Path, Sequence[str] | None] = {}

    def lines(self, places: Sequence[CodePlace]) -> tuple[str, ...]:
        """Return a line for each place."""
        return tuple(map(self._line, places))

    def _line(self, place: CodePlace) -> str:
        label = clean_line(place.label)[:_MAX_LABEL_CHARS]
        if isinstance(place.place, str):
            return f"{printable(place.place)[:_MAX_LABEL_CHARS]}:{place.line}{f': {label}' if label else ''}"
        lines = self._lines_of(place.place)
        text = cut_line(lines[place.line - 1].strip()) if lines and place.line <= len(lines) else ""
        shown = f"{_INDENT * place.depth}{shown_path(place.place, self._ctx)}:{place.line}"
        described = " | ".join(filter(None, (label, text)))
        return f"{shown}: {described}" if described else shown

    def _lines_of(self, path: Path) -> Sequence[str] | None:
        """Return the lines of a file; None where they may not be shown, or there are none."""
        if path not in self._known:
            self._known[path] = None
            with suppress(ToolError):
                canonical = self._ctx.paths.resolve(str(path), access="read")
                if not self._withholds(canonical, self._ctx.paths.root):
                    self._known[path] = source_lines(canonical)
        return self._known[path]


def source_lines(path: Path) -> Sequence[str]:
    """Return the lines of a file as a server counts them. Raise ToolError if it cannot be read, or is no text."""
    decoded = decode_file(read_regular_file(path, max_bytes=_MAX_FILE_BYTES))
    if decoded is None:
        raise ToolError(f"{path.name} is binary, and language servers read text only")
    return lines_of(decoded.readable)


def shown_path(path: Path, ctx: ToolContext) -> str:
    """Return a path as the model can hand it to another tool: relative to the working directory, if it lies there."""
    written = Path(os.path.normpath(path))
    cwd = ctx.paths.cwd
    return printable(str(written.relative_to(cwd) if is_below(written, cwd) and written != cwd else written))


def format_problems(problems: Sequence[Problem], shown: str) -> Output:
    """Return the problems of the file `shown`, a line for each."""
    if not problems:
        return Output(f"{shown} has no errors or warnings", SummaryDisplay(text="no errors"))
    lines = [
        f"{shown}:{one.line}: {'error' if one.is_error else 'warning'}: {cut_line(clean_line(one.message))}"
        f"{f' ({clean_line(one.code)[:60]})' if one.code else ''}"
        for one in problems[:MAX_RESULTS]
    ]
    more = len(problems) - len(lines)
    errors = sum(one.is_error for one in problems)
    summary = f"{errors:,} error{'' if errors == 1 else 's'}, {len(problems) - errors:,} others"
    return Output(with_notes(tuple(lines), (f"{more:,} more" if more else "",)), SummaryDisplay(text=summary))


def format_hover(text: str, symbol: str | None) -> Output:
    """Return the output for a server's text about a symbol."""
    clean = clean_for_terminal(text[: 4 * MAX_HOVER_CHARS]).strip()
    cut = clean if len(clean) <= MAX_HOVER_CHARS else f"{clean[:MAX_HOVER_CHARS]} [cut]"
    return Output(cut or f"nothing is known of {symbol} there")


_MAX_JUDGED = 100


class LspInput(BaseModel):
    """Arguments of LSP."""

    model_config = ConfigDict(extra="forbid")

    operation: Literal[
        "definition",
        "references",
        "implementations",
        "incoming_calls",
        "outgoing_calls",
        "hover",
        "symbols",
        "workspace_symbols",
        "diagnostics",
        "rename",
    ]
    file_path: str
    line: int | None = Field(default=None, ge=1)
    symbol: str | None = None
    new_name: str | None = Field(default=None, pattern=r"^[\w$]+$")


class LspTool(PlannedTool[LspInput]):
    """Answer from a language server; a rename is planned and made like any change of files.

    `code`: asks the servers; None: there are none.
    """

    name = "LSP"
    input_model = LspInput
    only_renames = True

    def __init__(
        self, code: CodeQueries | None = None, withholds: Callable[[Path, Path], bool] = lambda *_: False
    ) -> None:
        self._code = code
        self._withholds = withholds
        self._judged: dict[str, frozenset[Path]] = {}
        """Files that each rename may change, as they were judged, by the id of the call."""

    def may_run_in_parallel(self, args: LspInput) -> bool:
        return args.operation != "rename"

    def title(self, args: LspInput) -> str:
        what = f" {args.symbol}" if args.symbol else ""
        new = f" to {args.new_name}" if args.operation == "rename" else ""
        line = f":{args.line}" if args.line else ""
        return f"{args.operation}{what}{new} ({args.file_path}{line})"

    def question(self, args: LspInput) -> str:
        title = self.title(args)
        return f"{title[:1].upper()}{title[1:]}?" if args.operation == "rename" else f"Look up {title}?"

    async def effects(self, args: LspInput, ctx: ToolContext) -> Effects:
        if args.operation != "rename":
            return Effects(reads=(args.file_path,))
        if self._code is None:  # without servers, for callers that only ask whether the call may run
            return Effects(reads=(args.file_path,), writes=(args.file_path,))
        paths = frozenset(file.path for file in await self._renamed(args, ctx))
        self._judged[ctx.tool_use_id] = paths
        while len(self._judged) > _MAX_JUDGED:
            del self._judged[next(iter(self._judged))]
        changed = [args.file_path, *map(str, sorted(paths))]
        return Effects(reads=changed, writes=changed)

    def plan(self, args: LspInput, ctx: ToolContext) -> Plan | Output:
        raise NotImplementedError("a server has to be asked first, see `planned`")

    async def planned(self, args: LspInput, ctx: ToolContext) -> Plan | Output:
        match args.operation:
            case "rename":
                return await self._planned_rename(args, ctx)
            case "hover":
                return format_hover(await self._server.hover(await self._point(args, ctx)), args.symbol)
            case "symbols":
                return await self._listed(await self._server.symbols(self._path(args, ctx)), ctx)
            case "workspace_symbols":
                return await self._listed(
                    await self._server.symbols_named(_needed(args.symbol, "symbol"), self._path(args, ctx)), ctx
                )
            case "diagnostics":
                path = self._path(args, ctx)
                return format_problems(await self._server.problems(path), shown_path(path, ctx))
            case _:
                relation: Relation = args.operation
                return await self._listed(await self._server.related(relation, await self._point(args, ctx)), ctx)

    async def make(self, plan: Plan, args: LspInput, ctx: ToolContext) -> Output:
        unread = [change.target.path for change in plan.changes if ctx.seen_files.digest(change.target.path) is None]
        output = await super().make(plan, args, ctx)
        for path in unread:  # the model was shown the changed lines, not the file
            ctx.seen_files.forget(path)
        return output

    @property
    def _server(self) -> CodeQueries:
        if self._code is None:
            raise ToolError("there are no language servers here", advice="use Grep and Read")
        return self._code

    def _path(self, args: LspInput, ctx: ToolContext) -> Path:
        path = ctx.paths.resolve(args.file_path, access="read")
        if not path.is_file():
            raise ToolError(f"{args.file_path} is not a file; name the file that has the symbol")
        return path

    async def _point(self, args: LspInput, ctx: ToolContext) -> CodePoint:
        path, symbol = self._path(args, ctx), _needed(args.symbol, "symbol")
        lines = await to_thread.run_sync(source_lines, path, abandon_on_cancel=True)
        line, column = find_symbol(lines, symbol, args.line, shown_path(path, ctx))
        return CodePoint(path, line, column)

    async def _renamed(self, args: LspInput, ctx: ToolContext) -> Sequence[FileChanges]:
        new_name = _needed(args.new_name, "new_name")
        return await self._server.rename(await self._point(args, ctx), new_name)

    async def _planned_rename(self, args: LspInput, ctx: ToolContext) -> Plan:
        files = await self._renamed(args, ctx)
        judged = self._judged.get(ctx.tool_use_id)
        if judged is not None and not judged.issuperset(file.path for file in files):
            raise ToolError(
                "the language server would now change other files than before", advice="make the call again"
            )
        old_name = _needed(args.symbol, "symbol").rpartition(".")[2]
        new_name = _needed(args.new_name, "new_name")
        return await to_thread.run_sync(plan_code_rename, old_name, new_name, files, ctx, abandon_on_cancel=True)

    async def _listed(self, found: Found, ctx: ToolContext) -> Output:
        places = found.places[:MAX_RESULTS]
        text = await to_thread.run_sync(PlaceLines(ctx, self._withholds).lines, places, abandon_on_cancel=True)
        more = len(found.places) - len(places)
        notes = (f"{more:,} more are left out; ask about less" if more else "", found.note)
        count = f"{len(found.places):,} place{'' if len(found.places) == 1 else 's'}"
        if not places:
            return Output(with_notes(("nothing found",), notes), SummaryDisplay(text="nothing found"))
        return Output(with_notes(text, notes), SummaryDisplay(text=count))


def _needed(value: str | None, name: str) -> str:
    if not value:
        raise ToolError(f"{name} is missing; this operation needs it")
    return value
