"""Records of the tables of a paper, as the sandboxed worker hands them over.

The rule: a document may have got hold of the worker, so that all sizes are bounded.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_TABLES = 200
MAX_ROWS = 500
MAX_COLUMNS = 60
MAX_CELL_CHARS = 200
MAX_CAPTION_CHARS = 600
_MAX_QUOTE_CHARS = 400

Cell = Annotated[str, StringConstraints(max_length=MAX_CELL_CHARS)]
Line = Annotated[str, StringConstraints(max_length=_MAX_QUOTE_CHARS)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Record):
    """A row with numbers."""

    label: Cell
    cells: tuple[Cell, ...] = Field(max_length=MAX_COLUMNS)
    """As written, one for each column; empty where there is none."""
    quote: Line
    """The row as a line."""


class PaperTable(_Record):
    """A table, or the part of one that has the same columns."""

    name: Cell
    """Such as "Table 1", or words for its place if it has no caption."""
    caption: str = Field(default="", max_length=MAX_CAPTION_CHARS)
    page: int | None = None
    columns: tuple[Cell, ...] = Field(max_length=MAX_COLUMNS)
    rows: tuple[Row, ...] = Field(max_length=MAX_ROWS)


class PaperTables(_Record):
    """The tables of a document."""

    title: Cell = ""
    tables: tuple[PaperTable, ...] = Field(default=(), max_length=MAX_TABLES)
    pages: int | None = None
    """Number of pages; None if it has none."""
    pages_read: int | None = None
    scans: tuple[int, ...] = ()
    """Pages that are pictures without text."""


def cut(text: str, max_chars: int) -> str:
    """Return text on one line, cut at its end if it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def table_of(name: str, caption: str, page: int | None, columns: list[str], rows: list[Row]) -> PaperTable:
    """Return a table within the bounds."""
    return PaperTable(
        name=cut(name, MAX_CELL_CHARS),
        caption=cut(caption, MAX_CAPTION_CHARS),
        page=page,
        columns=tuple(cut(column, MAX_CELL_CHARS) for column in columns[:MAX_COLUMNS]),
        rows=tuple(rows[:MAX_ROWS]),
    )


def row_of(label: str, cells: list[str], quote: str) -> Row:
    """Return a row within the bounds."""
    return Row(
        label=cut(label, MAX_CELL_CHARS),
        cells=tuple(cut(cell, MAX_CELL_CHARS) for cell in cells[:MAX_COLUMNS]),
        quote=cut(quote, _MAX_QUOTE_CHARS),
    )
