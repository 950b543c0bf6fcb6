"""Columns of a table in a PDF, from the places of the cells in its rows, and the heads over them."""

from collections.abc import Iterator, Sequence

from panpan.documents.read_words import Rule
from panpan.repro.papers.cell_numbers import has_numbers, is_blank, is_in_brackets, is_words
from panpan.repro.papers.pdf.lines import LineCell, TextLine
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


def panels_of(
    lines: Sequence[TextLine], columns: Sequence[Column], rules: Sequence[Rule]
) -> Iterator[tuple[Sequence[TextLine], Sequence[TextLine]]]:
    """Yield heads with the lines below them: a table may have several heads."""
    heads: list[TextLine] = []
    body: list[TextLine] = []
    for index, line in enumerate(lines):
        if _is_head(lines, index, columns, rules, has_body=bool(body)):
            if body:
                yield heads, body
                heads, body = [], []
            heads.append(line)
        else:
            body.append(line)
    if body:
        yield heads, body


def _is_head(
    lines: Sequence[TextLine], index: int, columns: Sequence[Column], rules: Sequence[Rule], *, has_body: bool
) -> bool:
    line = lines[index]
    over_numbers = sum(
        any(not column.is_label and column.overlap(cell) > 0 for column in columns) for cell in line.cells
    )
    if not is_row(line):
        if has_body:
            return over_numbers >= 2 and over_numbers == sum(not is_number(cell) for cell in line.cells[-over_numbers:])
        return not _names_group(lines, index, columns)
    if has_body:
        return False
    return _is_head_of_numbers(lines, index, columns, rules)


def _is_head_of_numbers(
    lines: Sequence[TextLine], index: int, columns: Sequence[Column], rules: Sequence[Rule]
) -> bool:
    """True if the first row with numbers is a head, such as years or sizes.

    It has whole numbers, and no label above rows with labels, or a rule below it and fractions in all other rows.
    """
    line = lines[index]
    has_label = any(column.is_label and column.overlap(line.cells[0]) > 0 for column in columns)
    following = [other for other in lines[index + 1 :] if is_row(other)]
    labelled = sum(any(c.is_label and c.overlap(other.cells[0]) > 0 for c in columns) for other in following)
    cells = line.cells[1:] if has_label else line.cells
    if (
        following
        and not has_label
        and all(is_in_brackets(cell.text) and cell.text.strip("()").isdigit() for cell in cells)
    ):
        return True  # numbers of models, such as (1) and (2)
    if not following or not all(cell.text.strip("%@=kKMGBn ").isdigit() for cell in cells):
        return False
    if not has_label:
        return labelled * 10 >= len(following) * 7
    is_ruled = any(line.y < rule.y < following[0].y - following[0].size / 2 for rule in rules)
    others = [cell.text for other in following for cell in other.cells[1:] if is_number(cell)]
    return is_ruled and len(cells) > 1 and all("." in text for text in others)


def _names_group(lines: Sequence[TextLine], index: int, columns: Sequence[Column]) -> bool:
    """True if a line above the first row names the rows below it, or begins the label of the first one."""
    line = lines[index]
    is_in_front = abs(line.left - min(column.left for column in columns)) < line.size
    is_below_head = any(len(other.cells) > 1 for other in lines[:index])
    return len(line.cells) == 1 and is_in_front and is_below_head


def heads_of(heads: Sequence[TextLine], columns: Sequence[Column], rules: Sequence[Rule]) -> list[str]:
    """Return the head of each column: its words, and above them those of heads over several columns."""
    parts: list[list[str]] = [[] for _ in columns]
    for index, line in enumerate(heads):
        is_last = index == len(heads) - 1
        for cell in line.cells:
            for at in _covered(cell, line, heads, columns, rules, is_last=is_last):
                parts[at].append(cell.text)
    return [" ".join(part) for part in parts]


def _covered(
    cell: LineCell,
    line: TextLine,
    heads: Sequence[TextLine],
    columns: Sequence[Column],
    rules: Sequence[Rule],
    *,
    is_last: bool,
) -> Sequence[int]:
    """Return the columns below a cell of a head."""
    left, right = min(column.left for column in columns), max(column.right for column in columns)
    for rule in rules:
        is_below = line.y < rule.y < line.y + 1.3 * line.size
        is_part = rule.right - rule.left < 0.9 * (right - left)
        is_own = not any(rule.left <= other.middle <= rule.right for other in line.cells if other is not cell)
        if is_below and is_part and is_own and rule.left - 2 <= cell.middle <= rule.right + 2:
            under = [i for i, column in enumerate(columns) if rule.left - 3 <= column.middle <= rule.right + 3]
            if under:
                return under
    over = [i for i, column in enumerate(columns) if column.overlap(cell) > 0]
    if is_last and len(over) > 1:
        nearest = min(over, key=lambda i: abs(columns[i].middle - cell.middle))
        others = [other for other in line.cells if other is not cell]
        return [i for i in over if i == nearest or not any(columns[i].overlap(other) > 0 for other in others)]
    if is_last or len(line.cells) == len(columns):
        return over or [min(range(len(columns)), key=lambda i: -columns[i].overlap(cell))]
    return _centred(cell, line, columns) or over


def _centred(cell: LineCell, line: TextLine, columns: Sequence[Column]) -> Sequence[int]:
    """Return the neighbouring columns over whose middle a cell stands, which no other cell of its line covers."""
    taken = {i for i, c in enumerate(columns) for other in line.cells if other is not cell and c.overlap(other) > 0}
    best: tuple[float, int, Sequence[int]] | None = None
    free = [i for i, column in enumerate(columns) if i not in taken and not column.is_label]
    for start in free:
        for end in free:
            span = range(start, end + 1)
            if end < start or any(i not in free for i in span):
                continue
            if not all(columns[i].overlap(cell) > 0 for i in span) and len(span) == 1:
                continue
            off = abs((columns[start].left + columns[end].right) / 2 - cell.middle)
            if off < line.size and (best is None or (round(off), -len(span)) < (round(best[0]), best[1])):
                best = (off, -len(span), span)
    return best[2] if best else ()
