"""Columns of a table in a PDF, from the places of the cells in its rows."""

from collections.abc import Sequence

from panpan.documents.read_words import Rule
from panpan.repro.papers.cell_numbers import has_numbers, is_blank, is_words
from panpan.repro.papers.pdf_lines import LineCell, TextLine
from panpan.types.dataclass import dataclass

_FAR_HEAD = 1.5
"""Distance of a lone cell above a table that is no head of it, as a multiple of that of its rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, as wide as its cells."""

    left: float
    right: float
    is_label: bool
    """True if it holds labels of rows, and no numbers."""

    @property
    def middle(self) -> float:
        """Place of its middle."""
        return (self.left + self.right) / 2

    def overlap(self, cell: LineCell) -> float:
        """Return the width that a cell shares with it; below 0 the distance."""
        return min(self.right, cell.right) - max(self.left, cell.left)


def is_number(cell: LineCell) -> bool:
    """True if a cell is a number, or several."""
    return has_numbers(cell.text)


def is_row(line: TextLine) -> bool:
    """True if a line is a row of a table: it has cells with numbers, or with dashes in place of all of them."""
    others = line.cells[1:]
    return bool(others) and (any(map(is_number, line.cells)) or all(is_blank(cell.text) for cell in others))


def without_notes(lines: Sequence[TextLine], rules: Sequence[Rule]) -> Sequence[TextLine]:
    """Return the lines without those above the head of the table: above its first rule, or at a distance."""
    first = next((index for index, line in enumerate(lines) if is_row(line)), len(lines) - 1)
    above = [rule.y for rule in rules if rule.y < lines[first].y - 0.5 * lines[first].size]
    start = first
    while start > 0:
        line, after = lines[start - 1], lines[start]
        usual = lines[first + 1].y - lines[first].y if first + 1 < len(lines) else after.size
        is_far = len(line.cells) == 1 and after.y - line.y > _FAR_HEAD * max(usual, after.size)
        is_above_table = len(above) > 1 and above[-1] - above[0] > after.size / 2 and line.y < above[0]
        is_outside = len(line.cells) == 1 and line.left < min(each.left for each in lines[first:]) - line.size
        if is_far or is_above_table or is_outside:
            break
        start -= 1
    return lines[start:]


def columns_of(lines: Sequence[TextLine]) -> list[Column]:
    """Return the columns from left to right."""
    rows = [line for line in lines if is_row(line) or (len(line.cells) == 1 and is_number(line.cells[0]))]
    numbers = _merged([cell for row in rows for cell in row.cells if not is_words(cell.text)])
    texts = [cell for row in rows for cell in row.cells if is_words(cell.text) and not _covers(numbers, cell)]
    texts += _longer_labels(lines, texts, numbers)
    spans = [(left, right, False) for left, right in numbers] + [(left, right, True) for left, right in _merged(texts)]
    columns = [Column(left, right, is_label) for left, right, is_label in sorted(spans)]
    if columns and not any(column.is_label for column in columns):
        columns[0] = Column(columns[0].left, columns[0].right, is_label=True)
    return [_as_it_is_used(column, rows, index) for index, column in enumerate(columns)]


def _longer_labels(
    lines: Sequence[TextLine], labels: Sequence[LineCell], numbers: Sequence[tuple[float, float]]
) -> list[LineCell]:
    """Return words without numbers that begin where labels do: the heads of groups and the rest of labels."""
    left = min((cell.left for cell in labels), default=0.0)
    end = min((start for start, _ in numbers if start > left), default=left)
    alone = (line.cells[0] for line in lines if len(line.cells) == 1)
    return [cell for cell in alone if abs(cell.left - left) < 3 and cell.right < end]


def _covers(spans: Sequence[tuple[float, float]], cell: LineCell) -> bool:
    return any(min(right, cell.right) - max(left, cell.left) > 0 for left, right in spans)


def _as_it_is_used(column: Column, rows: Sequence[TextLine], index: int) -> Column:
    """Return a first column that holds numbers and more words as a column of labels."""
    if index or column.is_label:
        return column
    cells = [cell for row in rows for cell in row.cells if column.overlap(cell) > 0]
    words = sum(is_words(cell.text) for cell in cells)
    return Column(column.left, column.right, is_label=words * 3 > len(cells))


def _merged(cells: Sequence[LineCell]) -> list[tuple[float, float]]:
    """Return the stretches that cells cover which overlap."""
    spans: list[tuple[float, float]] = []
    for left, right in sorted((cell.left, cell.right) for cell in cells):
        if spans and left < spans[-1][1] - 0.5:
            spans[-1] = (spans[-1][0], max(spans[-1][1], right))
        else:
            spans.append((left, right))
    return spans
