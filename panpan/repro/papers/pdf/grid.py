"""Rows of a table in a PDF, from its lines."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from panpan.documents.read_words import Rule
from panpan.repro.papers.cell_numbers import has_numbers, is_in_brackets
from panpan.repro.papers.paper_table import PaperTable, Row, row_of, table_of
from panpan.repro.papers.pdf.columns import Column, columns_of, heads_of, is_number, is_row, panels_of, without_notes
from panpan.repro.papers.pdf.lines import TextLine
from panpan.types.dataclass import dataclass

_UNFINISHED = ("-", "(", ",", "/", "+", "&", " and", " with", " of", " for", " the", " in", " on", " w/", " w/o", " by")


@dataclass(frozen=True, slots=True)
class _Measures:
    row_gap: float
    """Usual distance of the lines of the table."""
    label_end: float
    """Left edge of the first column of numbers."""


@dataclass(slots=True)
class _GridRow:
    """A row, as it is put together from lines."""

    line: TextLine
    cells: dict[int, str]
    labels: dict[int, str]
    before: str = ""
    """Words of the label on lines above."""
    behind: str = ""
    group: str = ""

    def label(self) -> str:
        own = " / ".join(text for _, text in sorted(self.labels.items()) if text)
        return " ".join(part for part in (self.before, own, self.behind) if part)


def tables_of_block(
    lines: Sequence[TextLine], rules: Sequence[Rule], name: str, caption: str, page: int
) -> Iterator[PaperTable]:
    """Yield the tables of a stretch of lines: one for each head of columns in it."""
    lines = without_notes([line.cut_closer() for line in lines], rules)
    if any(cell.text.endswith("±") for line in lines for cell in line.cells):
        return  # numbers go on in the next line, and it is not sure in which
    columns = columns_of(lines)
    numeric = [index for index, column in enumerate(columns) if not column.is_label]
    if not numeric:
        return
    for heads, body in panels_of(lines, columns, rules):
        rows = _rows(body, columns, rules)
        if any(row.cells for row in rows):
            names = heads_of(heads, columns, rules)
            yield table_of(name, caption, page, [names[index] for index in numeric], [
                _finished(row, numeric) for row in rows if any(map(has_numbers, row.cells.values()))
            ])  # fmt: skip


def _finished(row: _GridRow, numeric: Sequence[int]) -> Row:
    label = " / ".join(part for part in (row.group, row.label()) if part)
    cells = [row.cells.get(index, "") for index in numeric]
    quote = " | ".join(part for part in (row.label(), *(cell for cell in cells if cell)) if part)
    return row_of(label, cells, quote)


def _rows(body: Sequence[TextLine], columns: Sequence[Column], rules: Sequence[Rule]) -> list[_GridRow]:
    """Return the rows with numbers; lines without numbers become part of a label, or name the group of rows."""
    rows: list[_GridRow] = []
    gaps = [after.y - before.y for before, after in pairwise(body)]
    label_end = min((column.left for column in columns[1:] if not column.is_label), default=columns[-1].right)
    measures = _Measures(median(gaps) if gaps else 0.0, label_end)
    waiting: list[TextLine] = []
    group = ""
    for line in body:
        if not is_row(line) and not _is_lone_number(line, columns):
            waiting.append(line)
            continue
        row = _grid_row(line, columns)
        if rows and not waiting and _is_below(row, rows[-1]):
            rows[-1].cells.update({at: f"{rows[-1].cells[at]} {cell}" for at, cell in row.cells.items()})
            continue
        group = _place_words(waiting, rows, row, group, measures)
        waiting = []
        row.group = group
        rows.append(row)
    if waiting and rows and _goes_on(rows[-1], waiting[0], measures):
        rows[-1].behind = " ".join([rows[-1].behind, waiting[0].text]).strip()
    _fill_down(rows, columns, rules)
    return rows


def _is_below(row: _GridRow, above: _GridRow) -> bool:
    """True if a row holds only the spreads of the numbers above, in brackets."""
    is_aside = not row.labels and all(map(is_in_brackets, row.cells.values()))
    return is_aside and bool(row.cells) and all(has_numbers(above.cells.get(at, "")) for at in row.cells)


def _is_lone_number(line: TextLine, columns: Sequence[Column]) -> bool:
    """True if a line has only a number, which stands in a column of numbers."""
    cell = line.cells[0]
    return len(line.cells) == 1 and is_number(cell) and any(not c.is_label and c.overlap(cell) > 0 for c in columns)


def _grid_row(line: TextLine, columns: Sequence[Column]) -> _GridRow:
    row = _GridRow(line, {}, {})
    for cell in line.cells:
        at = max(range(len(columns)), key=lambda i: columns[i].overlap(cell))
        into = row.labels if columns[at].is_label else row.cells
        into[at] = f"{into[at]} {cell.text}" if at in into else cell.text
    return row


def _place_words(
    waiting: Sequence[TextLine], rows: Sequence[_GridRow], row: _GridRow, group: str, measures: _Measures
) -> str:
    """Put lines without numbers between two rows where they belong, and return the name of the group of rows."""
    for line in waiting:
        text = line.text
        own = row.label()
        is_close = row.line.y - line.y < 0.85 * measures.row_gap or row.line.y - line.y < 0.7 * line.size
        if not own and is_close:
            row.before = " ".join([row.before, text]).strip()
        elif rows and _goes_on(rows[-1], line, measures):
            rows[-1].behind = " ".join([rows[-1].behind, text]).strip()
        elif own and (own[0].islower() or own[0] in "(&+" or text.lower().endswith(_UNFINISHED)):
            row.before = " ".join([row.before, text]).strip()
        else:
            group = text
    return group


def _goes_on(row: _GridRow, line: TextLine, measures: _Measures) -> bool:
    """True if a line below a row goes on with its label."""
    if len(line.cells) != 1 or line.right > measures.label_end:
        return False
    usual = measures.row_gap
    text, label = line.text, row.label()
    distance = line.y - row.line.y
    if row.before and not any(row.labels.values()):
        return distance < 0.85 * usual or distance < 0.7 * line.size  # the numbers stand beside the middle of a label
    if distance > 1.35 * line.size:
        return False
    starts_small = text[0].islower() or text[0] in "(&+"
    is_indented = line.left > row.line.left + 0.4 * line.size
    return starts_small or is_indented or label.lower().endswith(_UNFINISHED)


def _fill_down(rows: Sequence[_GridRow], columns: Sequence[Column], rules: Sequence[Rule]) -> None:
    """Repeat the first of several labels for the rows below it, or for all rows between two rules."""
    labels = [index for index, column in enumerate(columns) if column.is_label]
    if len(labels) < 2 or not rows:
        return
    first = labels[0]
    for part in _parts(rows, rules):
        named = [row for row in part if row.labels.get(first)]
        text = named[0].labels[first] if len(named) == 1 else ""
        for row in part:
            text = row.labels.get(first) or text
            row.labels[first] = text


def _parts(rows: Sequence[_GridRow], rules: Sequence[Rule]) -> Iterator[Sequence[_GridRow]]:
    part: list[_GridRow] = []
    for row in rows:
        if part and any(part[-1].line.y < rule.y < row.line.y for rule in rules):
            yield part
            part = []
        part.append(row)
    yield part
