"""The words of a PDF with their places, and its ruled lines. Synchronous, for the sandboxed worker: pdfium is C code.

Places are in points; y grows downwards. Text that stands on its side gets a page of its own, turned upright.
"""

import ctypes
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

MAX_PAGES = 200
"""Most pages that are read of one document."""
MAX_CHARS = 60_000
"""Most characters of a page."""
_MAX_OBJECTS = 5_000
"""Most drawn objects of a page that are looked at for ruled lines."""
_MAX_RULE_HEIGHT = 1.6
_MIN_RULE_WIDTH = 8.0
_WORD_GAP = 0.2
"""Gap between two words, as a part of the height of a line."""
_IS_SMALL = 0.86
"""Size of raised and lowered text at most, as a part of the text before it."""
_PASSWORD_ERROR = 4
_QUARTERS = 4


@dataclass(frozen=True, slots=True)
class Word:
    """Characters without a gap. Raised and lowered ones are written `^{a}` and `_{a}`."""

    text: str
    left: float
    right: float
    y: float
    """Baseline."""
    size: float
    """Height of the line that its font needs, about 1.1 times the size of the font."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line."""

    left: float
    right: float
    y: float


@dataclass(frozen=True, slots=True)
class WordPage:
    """Words of a page that are written in one direction."""

    number: int
    words: Sequence[Word]
    rules: Sequence[Rule]


@dataclass(frozen=True, slots=True)
class WordPages:
    """The words of a document."""

    pages: Sequence[WordPage]
    total: int
    """Number of pages in the file; `MAX_PAGES` are read."""
    scans: Sequence[int]
    """Pages that hold pictures and no text."""


def read_words(data: bytes, shown: str) -> WordPages:
    """Return the words of a PDF, page by page.

    Raises:
        ToolError: It is damaged or encrypted.
    """
    document = opened(data, shown)
    pages: list[WordPage] = []
    scans: list[int] = []
    total = len(document)
    for number in range(1, min(total, MAX_PAGES) + 1):
        try:
            found = list(_read_page(document[number - 1], number))
        except Exception:  # a damaged page makes the library raise nearly anything; the others may be fine
            continue
        pages += [page for page in found if page.words]
        if not any(page.words for page in found):
            scans += [number] * _has_picture(document, number)
    return WordPages(pages, total, scans)


def opened(data: bytes, shown: str) -> Any:
    """Open a PDF that has pages; raise `ToolError` if it is damaged or encrypted."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
        total = len(document)
    except Exception as exc:
        if getattr(exc, "err_code", None) == _PASSWORD_ERROR:
            raise ToolError(f"{shown} is encrypted; a copy without a password can be read") from exc
        raise ToolError(f"{shown} is a damaged PDF; get a whole copy of it") from exc
    if total == 0:
        raise ToolError(f"{shown} is a damaged PDF without pages; get a whole copy of it")
    return document


def _has_picture(document: Any, number: int) -> bool:
    from pypdfium2 import raw

    try:
        objects = document[number - 1].get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        return next(iter(objects), None) is not None
    except Exception:  # as above
        return False


def _read_page(page: Any, number: int) -> Iterator[WordPage]:
    """Yield the upright words of a page, then those of other directions."""
    by_quarter: dict[int, list[_Char]] = defaultdict(list)
    for quarter, char in _chars(page.get_textpage()):
        by_quarter[quarter].append(char)
    bounds = list(_thin_objects(page)) if by_quarter else []
    for quarter in sorted(by_quarter):
        turned = (_turned(one, quarter) for one in bounds)
        rules = [
            Rule(left, right, (top + bottom) / 2)
            for left, top, right, bottom in turned
            if bottom - top <= _MAX_RULE_HEIGHT and right - left >= _MIN_RULE_WIDTH
        ]
        yield WordPage(number, list(_words(by_quarter[quarter])), _joined(rules))
    if not by_quarter:
        yield WordPage(number, (), ())


@dataclass(frozen=True, slots=True)
class _Char:
    text: str
    left: float
    right: float
    y: float
    size: float


def _chars(text_page: Any) -> Iterator[tuple[int, _Char]]:
    """Yield the characters in the order of the file, each with the quarter by which it is turned; blanks, too."""
    from pypdfium2 import raw

    box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    for index in range(min(raw.FPDFText_CountChars(text_page), MAX_CHARS)):
        code = raw.FPDFText_GetUnicode(text_page, index)
        if raw.FPDFText_IsGenerated(text_page, index) == 1 or not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            continue
        raw.FPDFText_GetLooseCharBox(text_page, index, box)
        raw.FPDFText_GetCharOrigin(text_page, index, x, y)
        quarter = round(raw.FPDFText_GetCharAngle(text_page, index) / (math.pi / 2)) % _QUARTERS
        left, top, right, bottom = _turned((box.left, box.bottom, box.right, box.top), quarter)
        baseline = _turned((x.value, y.value, x.value, y.value), quarter)[1]
        char = _Char(chr(code), left, right, baseline, bottom - top)
        if all(map(math.isfinite, (left, right, baseline, char.size))):
            yield quarter, char


def _turned(box: tuple[float, float, float, float], quarter: int) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom with y downwards of a box with y upwards, turned by quarters."""
    left, low, right, high = box
    match quarter:
        case 0:
            return left, -high, right, -low
        case 1:  # clockwise, read from above
            return -high, -right, -low, -left
        case 2:
            return -right, low, -left, high
        case _:
            return low, left, high, right


def _thin_objects(page: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the bounds of thin drawn objects."""
    from itertools import islice

    from pypdfium2 import raw

    for one in islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=3), _MAX_OBJECTS):
        try:
            left, low, right, high = one.get_bounds()
        except Exception:  # as above
            continue
        if min(right - left, high - low) <= _MAX_RULE_HEIGHT:
            yield left, low, right, high


def _joined(rules: Sequence[Rule]) -> Sequence[Rule]:
    """Return the lines from top to bottom, with pieces that touch as one."""
    joined: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.y), rule.left)):
        before = joined[-1] if joined else None
        if before and abs(rule.y - before.y) < _MAX_RULE_HEIGHT and rule.left <= before.right + _MAX_RULE_HEIGHT:
            joined[-1] = Rule(before.left, max(before.right, rule.right), before.y)
        else:
            joined.append(rule)
    return joined


def _words(chars: Sequence[_Char]) -> Iterator[Word]:
    """Yield words in the order of the file."""
    word = _Growing()
    before: _Char | None = None
    for char in chars:
        if char.text.isspace() or not char.text.isprintable():
            yield from word.ended()
            before = None
            continue
        if before is not None and _is_printed_twice(before, char):
            continue  # bold by printing twice
        if before is not None and not word.takes(char, before):
            yield from word.ended()
        word.add(char)
        before = char
    yield from word.ended()


def _is_printed_twice(one: _Char, other: _Char) -> bool:
    near = 0.3 * (one.right - one.left)
    return one.text == other.text and abs(one.left - other.left) < near and abs(one.y - other.y) < near


class _Growing:
    """A word that grows by characters."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._parts: list[tuple[str, _Char]] = []
        self._main: _Char | None = None

    def takes(self, char: _Char, before: _Char) -> bool:
        """True if the character follows the one before without a gap, on its line or raised or lowered."""
        main = self._main or before
        gap = char.left - before.right
        size = max(main.size, char.size)
        if not -0.5 * size < gap < _WORD_GAP * size:
            return False
        return abs(char.y - main.y) < 0.1 * size or self._script(char) != "" or self._is_after_script(char)

    def _is_after_script(self, char: _Char) -> bool:
        return self._main is not None and abs(char.y - self._main.y) < 0.1 * self._main.size

    def _script(self, char: _Char) -> str:
        """Return `^` for a raised character, `_` for a lowered one, else an empty text."""
        main = self._main
        if main is None or char.size > _IS_SMALL * main.size:
            return ""
        raised = main.y - char.y
        if 0.12 * main.size < raised < 0.8 * main.size:
            return "^"
        return "_" if -0.6 * main.size < raised < -0.06 * main.size else ""

    def add(self, char: _Char) -> None:
        script = self._script(char)
        self._parts.append((script, char))
        if not script:
            self._main = char

    def ended(self) -> Iterator[Word]:
        """Yield the word, if there is one, and begin the next."""
        if self._parts:
            chars = [char for _, char in self._parts]
            main = self._main or chars[0]
            yield Word(_marked(self._parts), min(c.left for c in chars), max(c.right for c in chars), main.y, main.size)
        self._start()


def _marked(parts: Sequence[tuple[str, _Char]]) -> str:
    from itertools import groupby

    pieces = []
    for script, group in groupby(parts, key=lambda part: part[0]):
        text = "".join(char.text for _, char in group)
        pieces.append(f"{script}{{{text}}}" if script else text)
    return "".join(pieces)
