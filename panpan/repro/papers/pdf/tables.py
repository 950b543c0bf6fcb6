"""Tables of a PDF, found by the places of its words: rows of numbers below each other, near a caption or rules.

The rule: a cell is where its place says. Words that belong to no column become part of no number.
"""

from collections.abc import Iterator, Sequence
from statistics import median

from panpan.documents.read_words import MAX_PAGES, Rule, WordPages
from panpan.repro.papers.paper_table import (
    MAX_CAPTION_CHARS,
    MAX_CELL_CHARS,
    MAX_TABLES,
    PaperTable,
    PaperTables,
    cut,
)
from panpan.repro.papers.pdf.grid import tables_of_block
from panpan.repro.papers.pdf.lines import Flow, TextLine, caption_name, flows_of, gutter_of
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_ROW_GAP = 2.3
"""Distance of two baselines within a table, as a part of the height of a line."""
_NEAR_CAPTION = 4.5
_IS_FULL_CAPTION = 0.7
"""Part of the width that a line of a caption takes that goes on in the next."""
_MAX_CAPTION_LINES = 12
_FIGURE = compile_late(r"(?i)fig(?:ure|\.)\s*[A-Z]?\d")
_TITLE_SIZE = 1.25
"""Size of a title at least, as a multiple of that of the text."""
_MIN_FREE_ROWS = 2
"""Rows with numbers of a table without a caption."""


@dataclass(frozen=True, slots=True)
class _Caption:
    name: str
    text: str
    first: int
    last: int
    """Indexes of its lines."""


def pdf_tables(pages: WordPages) -> PaperTables:
    """Return the tables of a document in the order of its pages."""
    gutters = [gutter for page in pages.pages if (gutter := gutter_of(page)) is not None]
    usual = max(gutters, key=gutters.count, default=None)
    tables = [
        table for page in pages.pages for flow in flows_of(page, usual) for table in _tables_of(flow, page.number)
    ]
    return PaperTables(
        title=_title(pages),
        tables=tuple(sorted(tables, key=_order)[:MAX_TABLES]),
        pages=pages.total,
        pages_read=min(pages.total, MAX_PAGES),
        scans=tuple(pages.scans),
    )


def _order(table: PaperTable) -> tuple[int, bool, int]:
    """Return a key that orders tables by page, then by number."""
    digits = "".join(filter(str.isdigit, table.name))
    return table.page or 0, not caption_name(table.name), int(digits[:6] or 0)


def _title(pages: WordPages) -> str:
    """Return the largest text of the first page, if it is larger than the rest of it."""
    words = pages.pages[0].words if pages.pages and pages.pages[0].number == 1 else ()
    if not words:
        return ""
    largest = max(word.size for word in words)
    if largest < _TITLE_SIZE * median(word.size for word in words):
        return ""
    return cut(" ".join(word.text for word in words if word.size > 0.95 * largest), MAX_CELL_CHARS)


def _tables_of(flow: Flow, page: int) -> Iterator[PaperTable]:
    captions = list(_captions(flow))
    blocks = list(_blocks(flow, captions))
    owners = _owners(flow, captions, blocks)
    for index, (first, last) in enumerate(blocks):
        caption = owners.get(index)
        lines = flow.lines[first : last + 1]
        if caption is None and not _is_table(flow, first, last):
            continue
        name = caption.name if caption else f"table on page {page}"
        rules = _rules_near(flow, lines)
        yield from tables_of_block(lines, rules, name, caption.text if caption else "", page)


def _captions(flow: Flow) -> Iterator[_Caption]:
    index = 0
    while index < len(flow.lines):
        name = caption_name(flow.lines[index].text)
        if not name:
            index += 1
            continue
        last = index
        while last + 1 < len(flow.lines) and last - index < _MAX_CAPTION_LINES and _goes_on(flow, index, last):
            last += 1
        text = " ".join(line.text for line in flow.lines[index : last + 1])
        yield _Caption(name, cut(text, MAX_CAPTION_CHARS), index, last)
        index = last + 1


def _goes_on(flow: Flow, first: int, last: int) -> bool:
    """True if the line behind the last one of a caption belongs to it."""
    line, after = flow.lines[last], flow.lines[last + 1]
    gap = after.y - line.y
    width = flow.right - flow.left
    is_beside = len(after.cells) > 1 and (
        abs(after.left - line.left) > line.size / 2 or after.right < line.right - width / 5
    )
    if gap > 1.6 * line.size or _is_number_row(after) or is_beside:
        return False
    if any(line.y < rule.y < after.y - 0.3 * after.size for rule in flow.rules):
        return False
    if last > first and gap > 1.25 * (flow.lines[first + 1].y - flow.lines[first].y):
        return False
    if caption_name(after.text):
        return False
    # A line of a caption ends where the text has no room; a short one is its last.
    is_full = line.right - line.left > _IS_FULL_CAPTION * width
    is_name_alone = last == first and len(line.text.split()) <= 2
    goes_on = len(after.cells) == 1 and after.text[0].islower()
    return is_full or is_name_alone or goes_on


def _blocks(flow: Flow, captions: Sequence[_Caption]) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of stretches that may be tables."""
    in_caption = {index for one in captions for index in range(one.first, one.last + 1)}
    start: int | None = None
    for index, line in enumerate(flow.lines):
        is_other = index in in_caption or flow.is_prose(line) or _FIGURE.match(line.text) is not None
        is_far = start is not None and line.y - flow.lines[index - 1].y > _allowed_gap(flow, index)
        if start is not None and (is_other or is_far):
            yield from _trimmed(flow, start, index - 1)
            start = None
        if start is None and not is_other:
            start = index
    if start is not None:
        yield from _trimmed(flow, start, len(flow.lines) - 1)


def _allowed_gap(flow: Flow, index: int) -> float:
    line, before = flow.lines[index], flow.lines[index - 1]
    has_rule = any(before.y < rule.y < line.y for rule in flow.rules)
    return (_ROW_GAP + has_rule) * max(line.size, before.size)


def _trimmed(flow: Flow, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the stretch without lines behind its last row with numbers, if it has such rows."""
    rows = [index for index in range(first, last + 1) if _is_number_row(flow.lines[index])]
    if rows:
        yield first, min(last, _last_label(flow, rows[-1], last))


def _last_label(flow: Flow, row: int, last: int) -> int:
    """Return the index of a line right below the last row that may go on with its label, else that of the row."""
    if (
        row < last
        and len(flow.lines[row + 1].cells) == 1
        and flow.lines[row + 1].y - flow.lines[row].y < (1.35 * flow.lines[row].size)
    ):
        return row + 1
    return row


def _is_number_row(line: TextLine) -> bool:
    """True if a line may be a row of a table: it has several cells, and numbers among them."""
    return len(line.cells) > 1 and any(cell.is_numeric for cell in line.cells) and ". . ." not in line.text


def _owners(flow: Flow, captions: Sequence[_Caption], blocks: Sequence[tuple[int, int]]) -> dict[int, _Caption]:
    """Return the caption of each stretch that has one."""
    ways = [_neighbours(flow, captions, blocks, is_below=is_below) for is_below in (True, False)]
    ways.sort(key=len, reverse=True)  # captions of a document stand on the same side of their tables
    owners: dict[int, _Caption] = {}
    for caption in captions:
        index = next((way[caption] for way in ways if caption in way and way[caption] not in owners), None)
        if index is not None:
            owners[index] = caption
    return owners


def _neighbours(
    flow: Flow, captions: Sequence[_Caption], blocks: Sequence[tuple[int, int]], *, is_below: bool
) -> dict[_Caption, int]:
    """Return, by caption, the index of the stretch right below or above it."""
    found = ((caption, _neighbour(flow, caption, blocks, is_below=is_below)) for caption in captions)
    return {caption: index for caption, index in found if index is not None}


def _neighbour(flow: Flow, caption: _Caption, blocks: Sequence[tuple[int, int]], *, is_below: bool) -> int | None:
    for index, (first, last) in enumerate(blocks):
        if is_below and first == caption.last + 1:
            gap = flow.lines[first].y - flow.lines[caption.last].y
        elif not is_below and last <= caption.first - 1 and caption.first - 1 - last <= 2:
            gap = flow.lines[caption.first].y - flow.lines[last].y
        else:
            continue
        if gap < _NEAR_CAPTION * flow.lines[first].size:
            return index
    return None


def _is_table(flow: Flow, first: int, last: int) -> bool:
    """True if a stretch without a caption is a table, and no list, formula or axis of a figure."""
    lines = flow.lines[first : last + 1]
    after = flow.lines[last + 1 : last + 4]
    if any(_FIGURE.match(line.text) for line in after):
        return False
    rows = [line for line in lines if _is_number_row(line)]
    if len(rows) < _MIN_FREE_ROWS:
        return False
    labelled = sum(not row.cells[0].is_numeric and any(map(str.isalpha, row.cells[0].text)) for row in rows)
    several = sum(sum(cell.is_numeric for cell in row.cells) >= 2 for row in rows)
    head = not _is_number_row(lines[0]) and len(lines[0].cells) > 1
    is_ruled = len(_rules_near(flow, lines)) >= 2
    counts = [len(row.cells) for row in rows]
    is_even = sum(count == median(counts) for count in counts) * 2 > len(counts)
    return is_even and labelled * 2 >= len(rows) and (head or is_ruled) and (several * 2 >= len(rows) or is_ruled)


def _rules_near(flow: Flow, lines: Sequence[TextLine]) -> Sequence[Rule]:
    """Return the rules right above, in and right below the lines."""
    return [rule for rule in flow.rules if lines[0].y - 25 <= rule.y <= lines[-1].y + 15]
