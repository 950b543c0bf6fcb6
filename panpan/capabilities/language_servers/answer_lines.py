"""How answers of language servers are shown to the model: short lines whose paths read back as paths.

The rule: a server may name any file. What may not be read is named and not shown; its words are cleaned and cut.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from panpan.capabilities.language_servers.code_intelligence import CodePlace, Problem
from panpan.capabilities.language_servers.wire import lines_of
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.files.canonical import is_below
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import decode_file
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, printable
from panpan.text_search.shown import cut_line, with_notes
from panpan.types.display import SummaryDisplay
from panpan.types.tool import Output

MAX_RESULTS = 100
MAX_HOVER_CHARS = 4_000
_MAX_FILE_BYTES = 2_000_000
_MAX_LABEL_CHARS = 200
_INDENT = "  "


class PlaceLines:
    """Puts the lines of places into words; each file is read once. Synchronous.

    Args:
        ctx: That of the call.
        withholds: Whether a rule speaks against showing what is in a file.
    """

    def __init__(self, ctx: ToolContext, withholds: Callable[[Path, Path], bool]) -> None:
        self._ctx = ctx
        self._withholds = withholds
        self._known: dict[Path, Sequence[str] | None] = {}

    def told(self, places: Sequence[CodePlace]) -> tuple[str, ...]:
        """Return a line for each place."""
        return tuple(map(self._line, places))

    def _line(self, place: CodePlace) -> str:
        label = clean_line(place.label)[:_MAX_LABEL_CHARS]
        if isinstance(place.place, str):
            return f"{printable(place.place)[:_MAX_LABEL_CHARS]}:{place.line}{f': {label}' if label else ''}"
        lines = self._lines_of(place.place)
        text = cut_line(lines[place.line - 1].strip()) if lines and place.line <= len(lines) else ""
        shown = f"{_INDENT * place.depth}{shown_path(place.place, self._ctx)}:{place.line}"
        told = " | ".join(filter(None, (label, text)))
        return f"{shown}: {told}" if told else shown

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
    """Return the lines of a file as a server counts them.

    Raises:
        ToolError: It cannot be read, or is no text.
    """
    decoded = decode_file(read_regular_file(path, max_bytes=_MAX_FILE_BYTES))
    if decoded is None:
        raise ToolError(f"{path.name} is binary, and language servers read text only")
    return lines_of(decoded.readable)


def shown_path(path: Path, ctx: ToolContext) -> str:
    """Return a path as the model can hand it to another tool: relative to the working directory, if it lies there."""
    written = Path(os.path.normpath(path))
    cwd = ctx.paths.cwd
    return printable(str(written.relative_to(cwd) if is_below(written, cwd) and written != cwd else written))


def told_problems(problems: Sequence[Problem], shown: str) -> Output:
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


def told_hover(text: str, symbol: str | None) -> Output:
    """Return what a server tells about a symbol."""
    clean = clean_for_terminal(text[: 4 * MAX_HOVER_CHARS]).strip()
    cut = clean if len(clean) <= MAX_HOVER_CHARS else f"{clean[:MAX_HOVER_CHARS]} [cut]"
    return Output(cut or f"nothing is known of {symbol} there")
