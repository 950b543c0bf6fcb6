"""Lines of a page of a PDF, column by column.

A page of two columns has stretches that go over both, such as its title and wide tables.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from panpan.documents.read_words import Rule, Word, WordPage
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_SAME_LINE = 0.35
"""Distance of baselines within a line, as a part of the height of its words."""
_CELL_GAP = 0.75
"""Gap between two cells, as a part of the height; blanks of justified text are smaller."""
_CLOSE_CELL_GAP = 0.42
"""The same, in a table."""
_NUMBER_GAP = 0.45
"""Gap between two cells that are numbers."""
_GLUE_GAP = 1.1
"""Gap at most beside signs such as ± that belong to both sides."""
_NEAR_ROW = 1.3
"""Distance of rows of a table that goes over two columns, as a part of the height of a line."""
_NEAR_CAPTION = 2.2
_MIN_PAGE_WIDTH = 100.0
_GUTTER_WORDS = 0.55
"""Words at most that stand over the gap between two columns, such as those of wide tables, as a part of the usual."""
_MIN_GUTTER = 6.0
_MIN_PROSE_LINES = 4
"""Lines of text in each column of a page that has two."""
_IS_FULL = 0.8
"""Part of the width that a line of running text takes."""
_MIN_PROSE_WORDS = 5

_NUMERIC = compile_late(
    r"[(\[]?[-+\u2212\u2013±$€£~≈<>]?[(\[]?\.?\d[\d.,]*(?:[eE][-\u2212+]?\d+)?[%‰]?[*†‡§)\]]*(?:[\^_]\{[^{}]*\})*"
)
_CAPTION = compile_late(
    r"(?i)(?:supplementary |extended data )?(?:table|tab\.|tbl\.)\s*((?:[A-Z]\.?)?\d{1,3}(?:\.\d{1,2})?|[IVXLC]{1,6})\b"
)
_SIGN = frozenset({"±", "+/-", "+-", "\u00d7", "·"})


@dataclass(frozen=True, slots=True)
class LineCell:
    """Words of a line without a wide gap."""

    text: str
    left: float
    right: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2

    @property
    def is_numeric(self) -> bool:
        """True if it looks like a number."""
        return bool(_NUMERIC.match(self.text.replace("$", "")))


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line, cut at wide gaps."""

    cells: Sequence[LineCell]
    words: Sequence[Word]
    y: float
    size: float

    @property
    def text(self) -> str:
        return "  ".join(cell.text for cell in self.cells)

    @property
    def left(self) -> float:
        return self.cells[0].left

    @property
    def right(self) -> float:
        return self.cells[-1].right

    def cut_closer(self) -> "TextLine":
        """Return the same line, cut at smaller gaps: words in tables are not spread to fill a line."""
        return _line(self.words, cell_gap=_CLOSE_CELL_GAP)

    def is_caption(self) -> bool:
        """True if a caption of a table begins here."""
        return caption_name(self.text) != ""


def caption_name(text: str) -> str:
    """Return the name with which a caption begins, such as `Table 1`; else an empty text."""
    found = _CAPTION.match(text)
    if found is None or not text[0].isupper():
        return ""
    behind = text[found.end() :].lstrip()
    if behind[:1].islower() or behind[:1] in {",", ";", ")"}:
        return ""  # running text that mentions it
    return f"Table {found[1]}"


@dataclass(frozen=True, slots=True)
class Flow:
    """Lines below each other."""

    lines: Sequence[TextLine]
    rules: Sequence[Rule]
    left: float
    right: float

    def is_prose(self, line: TextLine) -> bool:
        """True if a line is running text."""
        return _is_prose(line, self.right - self.left)


def _is_prose(line: TextLine, width: float) -> bool:
    words = line.text.split()
    widest = max(line.cells, key=lambda cell: cell.right - cell.left)
    numbers = sum(bool(_NUMERIC.fullmatch(word)) for word in words)
    return widest.right - widest.left > _IS_FULL * width and len(words) >= _MIN_PROSE_WORDS and numbers * 2 < len(words)


def flows_of(page: WordPage, usual: tuple[float, float] | None = None) -> Iterator[Flow]:
    """Yield the stretches of a page, each with its lines from top to bottom.

    `usual`: the gap between two columns on other pages of the document.
    """
    left, right = min(word.left for word in page.words), max(word.right for word in page.words)
    gutter = usual if usual and _fits(page.words, usual) else gutter_of(page)
    if gutter is None:
        yield Flow(list(_lines(page.words)), page.rules, left, right)
        return
    middle = sum(gutter) / 2
    wide = list(_wide_bands(page, gutter, left, right))
    for top, bottom in wide:
        inside = [word for word in page.words if top <= word.y <= bottom]
        rules = [rule for rule in page.rules if top - 20 <= rule.y <= bottom + 20]
        yield Flow(list(_lines(inside)), rules, left, right)
    for begin, end in ((left, gutter[0]), (gutter[1], right)):
        is_left = begin == left
        words = [
            word
            for word in page.words
            if ((word.left + word.right) / 2 < middle) == is_left
            and not any(top <= word.y <= bottom for top, bottom in wide)
        ]
        rules = [rule for rule in page.rules if ((rule.left + rule.right) / 2 < middle) == is_left]
        yield Flow(list(_lines(words)), rules, begin, end)


def _lines(words: Sequence[Word]) -> Iterator[TextLine]:
    """Yield the lines of words, from top to bottom."""
    yield from map(_line, _rows(words))


def _rows(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield the words that stand on one baseline, from left to right."""
    row: list[Word] = []
    for word in sorted(words, key=lambda word: (word.y, word.left)):
        if row and word.y - row[0].y > _SAME_LINE * max(word.size, row[0].size):
            yield sorted(row, key=lambda word: word.left)
            row = []
        row.append(word)
    if row:
        yield sorted(row, key=lambda word: word.left)


def _line(words: Sequence[Word], cell_gap: float = _CELL_GAP) -> TextLine:
    size = max(word.size for word in words)
    groups: list[list[Word]] = []
    for word in words:
        if groups and _belongs(groups[-1][-1], word, size, cell_gap):
            groups[-1].append(word)
        else:
            groups.append([word])
    cells = [LineCell(" ".join(w.text for w in group), group[0].left, max(w.right for w in group)) for group in groups]
    return TextLine(cells, words, words[0].y, size)


def _belongs(before: Word, word: Word, size: float, cell_gap: float) -> bool:
    """True if a word is in the cell of the word before it."""
    gap = (word.left - before.right) / size
    if before.text in _SIGN or word.text in _SIGN or word.text.startswith("±") or before.text.endswith("±"):
        return gap < _GLUE_GAP
    if _NUMERIC.fullmatch(before.text) and _NUMERIC.fullmatch(word.text):
        goes_on = word.text.startswith(("(", "[", "±"))
        return gap < cell_gap if goes_on else gap < _NUMBER_GAP and "[" in before.text
    return gap < cell_gap


def _fits(words: Sequence[Word], gutter: tuple[float, float]) -> bool:
    """True if most lines of a page leave the gap between two columns free."""
    rows = list(_rows(words))
    return sum(_crosses(row, gutter) for row in rows) * 3 < len(rows)


def gutter_of(page: WordPage) -> tuple[float, float] | None:
    """Return the gap between the two columns of a page; None if it has one column."""
    words = page.words
    left, right = min(word.left for word in words), max(word.right for word in words)
    width = right - left
    if width < _MIN_PAGE_WIDTH:
        return None
    covered = [0] * (int(width) + 2)
    for word in words:
        for at in range(int(word.left - left), min(int(word.right - left) + 1, len(covered))):
            covered[at] += 1
    start, end = int(width * 0.35), int(width * 0.65)
    typical = sorted(covered)[len(covered) // 2]
    most = _GUTTER_WORDS * typical
    stretches = [list(group) for is_low, group in groupby(range(start, end), lambda at: covered[at] <= most) if is_low]
    best = max(stretches, key=len, default=[])
    if len(best) < _MIN_GUTTER:
        return None
    gutter = (left + best[0], left + best[-1] + 1)
    for begin, stop, side in ((left, gutter[0], 0), (gutter[1], right, 1)):
        inside = [w for w in words if ((w.left + w.right) / 2 < sum(gutter) / 2) == (side == 0)]
        if sum(_is_prose(line, stop - begin) for line in _lines(inside)) < _MIN_PROSE_LINES:
            return None
    return gutter


def _wide_bands(
    page: WordPage, gutter: tuple[float, float], left: float, right: float
) -> Iterator[tuple[float, float]]:
    """Yield top and bottom of the stretches that go over both columns."""
    crossing = [row for row in _rows(page.words) if _crosses(row, gutter)]
    wide_rules = [rule.y for rule in page.rules if rule.left < gutter[0] - 5 and rule.right > gutter[1] + 5]
    marks = [(row[0].y - row[0].size / 2, row[0].y + row[0].size / 2) for row in crossing]
    marks += [(y, y) for y in wide_rules]
    if not marks:
        return
    stops = list(_narrow_lines(page.words, crossing, gutter, (left, right)))
    top: float = min(word.y for word in page.words) - 50
    bottom = max(word.y for word in page.words) + 50
    band: tuple[float, float] = (top, top)
    for begin, end in [*sorted(marks), (bottom, bottom)]:
        if any(band[1] < y < begin for y in stops):
            if band != (top, top):
                yield _grown(band, page.words, stops)
            band = (begin, end)
        else:
            band = (band[0], max(band[1], end))
    if band != (bottom, bottom):
        yield _grown(band, page.words, stops)


def _grown(band: tuple[float, float], words: Sequence[Word], stops: Sequence[float]) -> tuple[float, float]:
    """Return a stretch with the rows of a table right above and below it, and with its caption."""
    top, bottom = band
    lines = list(_lines(words))
    inside = [line for line in lines if top <= line.y <= bottom]
    # The first row of a table stands at some distance below its caption.
    reach = _NEAR_CAPTION if inside and any(line.is_caption() for line in inside[-3:]) else _NEAR_ROW
    for line in lines:
        if bottom < line.y < bottom + reach * line.size:
            if any(bottom < stop <= line.y + line.size / 2 for stop in stops):
                break
            bottom, reach = line.y + line.size / 2, _NEAR_ROW
    for line in reversed(lines):
        if top - _NEAR_ROW * line.size < line.y < top:
            if any(line.y - line.size / 2 <= stop < top for stop in stops):
                break
            top = line.y - line.size / 2
    captions = [line for line in lines if line.is_caption()]
    if not any(top <= line.y <= bottom for line in captions):
        near = [
            (max(top - line.y, line.y - bottom), line)
            for line in captions
            if len(line.cells) == 1 and top - _NEAR_CAPTION * line.size < line.y < bottom + _NEAR_CAPTION * line.size
        ]
        if near:
            y = min(near, key=lambda one: one[0])[1].y
            top, bottom = min(top, y - 2), max(bottom, y + 2)
    return top - 1, bottom + 1


def _crosses(row: Sequence[Word], gutter: tuple[float, float]) -> bool:
    """True if words go on over the gap between the columns."""
    middle = sum(gutter) / 2
    before = max((word.right for word in row if word.left < middle), default=None)
    behind = min((word.left for word in row if word.left >= middle), default=None)
    if before is None:
        return False
    return before > middle or (
        behind is not None and behind - before < min(0.7 * (gutter[1] - gutter[0]), 0.7 * row[0].size)
    )


def _narrow_lines(
    words: Sequence[Word], crossing: Sequence[Sequence[Word]], gutter: tuple[float, float], ends: tuple[float, float]
) -> Iterator[float]:
    """Yield the baselines of lines that show that the page has two columns there: running text, and captions."""
    middle = sum(gutter) / 2
    sides = [
        [word for word in words if ((word.left + word.right) / 2 < middle) == is_left] for is_left in (True, False)
    ]
    for side, other, width in (
        (sides[0], sides[1], gutter[0] - ends[0]),
        (sides[1], sides[0], ends[1] - gutter[1]),
    ):
        for line in _lines(side):
            above = [line.y - row[0].y for row in crossing if row[0].y <= line.y + line.size / 2]
            distance = min(above, default=line.size * 9)
            is_alone = not any(abs(word.y - line.y) < line.size / 2 for word in other)
            is_of_wide = distance < line.size / 2 or (distance < 1.4 * line.size and is_alone)
            if not is_of_wide and (_is_prose(line, width) or line.is_caption()):
                yield line.y
