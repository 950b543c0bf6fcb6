"""Tables of Markdown: columns as wide as they need to be, or as there is room; cells wrap within them."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.faces.terminal.rendering.cells import cell_width, wrapped
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass

Alignment: TypeAlias = Literal["left", "center", "right"]

_GAP = 2
"""Cells between columns."""
_NARROWEST = 4
"""Cells of a column; where not all have that, the table becomes a list."""


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide a table's columns are, and how what is in them stands."""

    header: Sequence[str]
    widths: Sequence[int]
    """Empty where the columns have no room beside each other."""
    alignments: Sequence[Alignment]


def columns_of(
    header: Sequence[str], rows: Sequence[Sequence[str]], alignments: Sequence[Alignment], width: int
) -> Columns:
    """Return columns for a table of painted cells in `width` cells; rows that come later have to do with them."""
    needed = [max(1, *(cell_width(cell) for cell in column)) for column in zip(header, *rows, strict=True)]
    room = width - _GAP * (len(needed) - 1)
    if sum(needed) > room:
        needed = _shrunk(needed, room)
    return Columns(header, needed, alignments)


def header_rows(columns: Columns, theme: Theme) -> list[str]:
    """Return what stands above the rows."""
    if not columns.widths:
        return []
    rule = (" " * _GAP).join("─" * width for width in columns.widths)
    return [*_row(columns.header, columns), theme.paint("dim", rule)]


def body_rows(cells: Sequence[str], columns: Columns, width: int) -> list[str]:
    """Return the lines of one row."""
    if columns.widths:
        return _row(cells, columns)
    pairs = [f"{name}: {cell}" if cell_width(name) else cell for name, cell in zip(columns.header, cells, strict=True)]
    return [row for pair in pairs for row in wrapped(pair, width)]


def _row(cells: Sequence[str], columns: Columns) -> list[str]:
    wrapped_cells = [wrapped(cell, width) for cell, width in zip(cells, columns.widths, strict=True)]
    lines = []
    for index in range(max(map(len, wrapped_cells))):
        texts = [
            _aligned(rows[index] if index < len(rows) else "", width, alignment)
            for rows, width, alignment in zip(wrapped_cells, columns.widths, columns.alignments, strict=True)
        ]
        lines.append((" " * _GAP).join(texts).rstrip(" "))
    return lines


def _aligned(text: str, width: int, alignment: Alignment) -> str:
    blanks = width - cell_width(text)
    before = {"left": 0, "center": blanks // 2, "right": blanks}[alignment]
    return " " * before + text + " " * (blanks - before)


def _shrunk(needed: Sequence[int], room: int) -> list[int]:
    """Return widths that fit in `room`: the widest columns give first. Nothing where even narrow ones do not fit."""
    if sum(min(width, _NARROWEST) for width in needed) > room:
        return []
    low, high = _NARROWEST, max(needed)
    while low < high:  # the largest bound on a column that makes them fit
        middle = (low + high + 1) // 2
        if sum(min(width, middle) for width in needed) <= room:
            low = middle
        else:
            high = middle - 1
    widths = [min(width, low) for width in needed]
    spare = room - sum(widths)
    for index, width in enumerate(needed):
        if width > low and spare:
            widths[index], spare = widths[index] + 1, spare - 1
    return widths
