"""Heads of the columns of a table in a PDF: over one column or several, and again below other rows."""

from collections.abc import Iterator, Sequence

from panpan.documents.read_words import Rule
from panpan.repro.papers.cell_numbers import is_in_brackets
from panpan.repro.papers.pdf_columns import Column, is_number, is_row
from panpan.repro.papers.pdf_lines import LineCell, TextLine


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
