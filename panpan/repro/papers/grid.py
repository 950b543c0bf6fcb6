"""Tables of pages, READMEs and LaTeX: a grid of cells, of which some are heads and labels."""

from collections.abc import Iterator, Sequence
from itertools import islice

from panpan.repro.papers.cell_numbers import has_numbers, is_blank, is_in_brackets, is_words
from panpan.repro.papers.paper_table import MAX_COLUMNS, MAX_ROWS, MAX_TABLES, PaperTable, Row, row_of, table_of
from panpan.types.dataclass import dataclass

_MAX_LABEL_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell as the document has it."""

    text: str
    width: int = 1
    """Columns that it covers."""
    height: int = 1
    """Rows that it covers."""
    is_head: bool = False


def _table_of(
    name: str, caption: str, lines: Sequence[Sequence[GridCell]], *, heads: int | None = None
) -> PaperTable | None:
    """Return the table of a grid; None if it has no numbers.

    Args:
        name: Such as "Table 1".
        caption: Its text; may be empty.
        lines: Rows of cells as they are written.
        heads: Number of rows with heads; None: found by what is in them.
    """
    grid = _spread(lines)
    if not grid:
        return None
    count = _count_heads(grid) if heads is None else max(heads, 0)
    head, body = grid[:count], grid[count:]
    labels = _label_columns(body)
    width = max(map(len, grid))
    numeric = [column for column in range(width) if column not in labels]
    rows: list[Row] = []
    group = ""
    for line in body:
        texts = [cell.text if cell else "" for cell in line]
        label = " / ".join(dict.fromkeys(texts[column] for column in labels if column < len(texts) and texts[column]))
        cells = [texts[column] if column < len(texts) else "" for column in numeric]
        if len(set(filter(None, texts))) == 1 and not any(map(has_numbers, cells)):
            group = next(filter(None, texts))  # a line over all columns that names the rows below it
        if not any(map(has_numbers, cells)) or len({id(cell) for cell in line if cell}) == 1:
            continue
        if rows and not label and all(is_in_brackets(cell) for cell in cells if cell):
            rows[-1] = _with_spreads(rows[-1], cells)
            continue
        quote = " | ".join(text for text in (label, *cells) if text)
        rows.append(row_of(" / ".join(filter(None, (group, label))), cells, quote))
    columns = [_head_of(head, column) for column in numeric]
    used = [i for i in range(len(columns)) if any(has_numbers(row.cells[i]) for row in rows if i < len(row.cells))]
    return table_of(name, caption, None, columns, rows) if used else None


def _with_spreads(row: Row, below: Sequence[str]) -> Row:
    """Return a row with the numbers in brackets that stand below its own."""
    cells = [" ".join(filter(None, both)) for both in zip(row.cells, below, strict=False)]
    return row_of(row.label, cells, f"{row.quote} | {' | '.join(filter(None, below))}")


def _spread(lines: Sequence[Sequence[GridCell]]) -> list[list[GridCell | None]]:
    """Return the grid with a cell in each place that it covers."""
    grid: list[list[GridCell | None]] = []
    hanging: dict[int, tuple[int, GridCell]] = {}
    for line in lines[:MAX_ROWS]:
        row: list[GridCell | None] = []
        cells = iter(line)
        while len(row) < MAX_COLUMNS:
            if len(row) in hanging:
                left, cell = hanging.pop(len(row))
                if left > 1:
                    hanging[len(row)] = (left - 1, cell)
                row.append(cell)
                continue
            new = next(cells, None)
            if new is None:
                if not any(column > len(row) for column in hanging):
                    break
                row.append(None)
                continue
            for _ in range(min(max(new.width, 1), MAX_COLUMNS - len(row))):
                if new.height > 1:
                    hanging[len(row)] = (new.height - 1, new)
                row.append(new)
        grid.append(row)
    return grid


def _count_heads(grid: Sequence[Sequence[GridCell | None]]) -> int:
    """Return the number of rows at the top that are heads: all their cells are, or none is a number."""
    count = 0
    has_heads = False
    for row in grid:
        cells = [cell for cell in row if cell and cell.text]
        is_head = bool(cells) and all(cell.is_head for cell in cells)
        has_heads = has_heads or is_head
        if not is_head and (has_heads or any(has_numbers(cell.text) or is_blank(cell.text) for cell in cells)):
            break
        if not is_head and count and len({id(cell) for cell in cells}) == 1:
            break  # a line over all columns that names the rows below it
        count += 1
    return count if count < len(grid) else min(1, len(grid))


def _label_columns(body: Sequence[Sequence[GridCell | None]]) -> list[int]:
    """Return the first columns that hold words, or the first one of all if all hold numbers."""
    labels: list[int] = []
    body = [row for row in body if len({id(cell) for cell in row if cell and cell.text}) > 1]
    width = max(map(len, body), default=0)
    for column in range(min(_MAX_LABEL_COLUMNS, width - 1)):
        cells = [row[column] for row in body if column < len(row)]
        texts = [cell for cell in cells if cell and not is_blank(cell.text)]
        words = sum(cell.is_head or is_words(cell.text) for cell in texts)
        if not texts or words * 3 <= len(texts):
            break
        labels.append(column)
    return labels or [0]


def _head_of(head: Sequence[Sequence[GridCell | None]], column: int) -> str:
    texts = [cell.text for row in head if column < len(row) and (cell := row[column]) is not None]
    return " ".join(dict.fromkeys(text for text in texts if text))


def named_tables(grids: Iterator[tuple[str, str, Sequence[Sequence[GridCell]]]]) -> tuple[PaperTable, ...]:
    """Return the first tables with numbers, each with a name of its own.

    Args:
        grids: For each, its name (or an empty text), its caption and its grid.
    """
    return tuple(islice(_named_tables(grids), MAX_TABLES))


def _named_tables(grids: Iterator[tuple[str, str, Sequence[Sequence[GridCell]]]]) -> Iterator[PaperTable]:
    unnamed = 0
    for name, caption, lines in grids:
        if not name:
            unnamed += 1
        table = _table_of(name or f"table {unnamed}", caption, lines)
        if table is not None:
            yield table
