r"""Replacing one text by another in a file's text: literal, exact, and never at a place that is not certain.

No regular expressions, no trimming, no nearest match: what is not there exactly is an error that shows what is. The one
liberty is the line break, since a model writes "\n" for every kind; texts in which it writes "\r" itself are taken as
they are.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from panpan.errors import ToolError
from panpan.system.text.file_text import FileText
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_TEXT_CHARS = 20_000_000
"""Most characters that a file may have after an edit."""
_MAX_LISTED_LINES = 8
_MAX_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement that the model asks for; `old` is not empty."""

    old: str
    new: str
    replace_all: bool = False


class LineBreakView:
    r"""View of a text in which every line break is "\n", and the way back to the breaks that are really there.

    A model writes "\n" whatever the file has. A lone "\r" is a line break only in a file that has no "\n" at all (as
    old Macs wrote them); elsewhere it is a character like any other.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.is_mac = "\r" in source and "\n" not in source
        self.text = source.replace("\r", "\n") if self.is_mac else source.replace("\r\n", "\n")
        self._two_wide: Sequence[int] = () if self.is_mac or "\r\n" not in source else _positions(source)

    def source_index(self, index: int) -> int:
        """Return the place in `source` of the character at `index` of `text`."""
        return index + bisect_left(self._two_wide, index)

    def breaks(self, start: int, end: int) -> list[str]:
        """Return the line breaks of the file between `start` and `end` of `text`, in order."""
        return re.findall(r"\r\n|\n|\r" if self.is_mac else r"\r\n|\n", self._source_slice(start, end))

    def break_near(self, index: int) -> str:
        r"""Return the line break of the line at `index` of `text`: the next one, else the one before, else "\n"."""
        position = self.text.find("\n", index)
        if position < 0:
            position = self.text.rfind("\n", 0, index)
        return self._source_slice(position, position + 1) if position >= 0 else "\n"

    def fitted(self, addition: str, start: int, end: int) -> str:
        """Return `addition` with the line breaks that belong between `start` and `end` of `text`.

        Each takes the place of one that is there, in order; what is left over goes on like the last of them.
        """
        if "\n" not in addition:
            return addition
        old = self.breaks(start, end) or [self.break_near(end)]
        first, *lines = addition.split("\n")
        return first + "".join(old[min(number, len(old) - 1)] + line for number, line in enumerate(lines))

    def _source_slice(self, start: int, end: int) -> str:
        return self.source[self.source_index(start) : self.source_index(end)]


def _positions(source: str) -> list[int]:
    return [match.start() - number for number, match in enumerate(re.finditer("\r\n", source))]


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    text: str


def replace_text(file_text: FileText, replacement: Replacement, shown: str) -> tuple[FileText, int]:
    """Return the text with `replacement` made, and how many times it was made.

    Raises:
        ToolError: The old text is not there, or is there more than once without `replace_all`, or the new text is the
            same or cannot be kept in the file's encoding.
    """
    old, new = replacement.old, replacement.new
    if old == new:
        raise ToolError(f"old_string and new_string are the same, so {shown} would not change; give the text to put in")
    file_text.encoding.check(new, shown)
    view = LineBreakView(file_text.text)
    haystack = view.source if "\r" in old else view.text
    if replacement.replace_all:
        count = haystack.count(old)
        if count == 0:
            raise _missing(haystack, old, shown)
        size = len(haystack) + count * (len(new) - len(old))
        if size > MAX_TEXT_CHARS:
            raise ToolError(f"{shown} would grow to {size:,} characters; at most {MAX_TEXT_CHARS:,} can be edited")
    else:
        _require_single(haystack, old, shown)
        count = 1
    if replacement.replace_all and haystack == view.source:  # no line ends to adapt
        source = haystack.replace(old, new)
    else:
        places = [found.start() for found in islice(re.finditer(re.escape(old), haystack), count)]
        source = _spliced(view.source, _spans(view, places, replacement))
    if source == view.source:
        raise ToolError(f"the edit does not change {shown}: the text is already like new_string")
    return FileText(source, file_text.encoding), count


def _require_single(haystack: str, old: str, shown: str) -> None:
    first = haystack.find(old)
    if first < 0:
        raise _missing(haystack, old, shown)
    if haystack.find(old, first + 1) >= 0:  # overlapping ones count: either could be meant
        raise ToolError(
            _ambiguous(haystack, old, shown),
            advice="include more of the lines around the right place, or set replace_all to change every one",
        )


def _missing(haystack: str, old: str, shown: str) -> ToolError:
    return ToolError(f"old_string was not found in {shown}", advice=explain_missing(haystack, old))


def _ambiguous(haystack: str, old: str, shown: str) -> str:
    lines: list[int] = []
    count, place, line, counted = 0, haystack.find(old), 1, 0
    while place >= 0 and count < _MAX_COUNTED:
        line += haystack.count("\n", counted, place)
        counted = place
        if line not in lines[-1:]:
            lines.append(line)
        count += 1
        place = haystack.find(old, place + 1)
    times = f"{count} times" if place < 0 else f"{count} times or more"
    listed = ", ".join(map(str, lines[:_MAX_LISTED_LINES])) + " …" * (len(lines) > _MAX_LISTED_LINES or place >= 0)
    return f"old_string is ambiguous: it occurs {times} in {shown}, at line{'s' * (len(lines) > 1)} {listed}"


def _spans(view: LineBreakView, places: list[int], replacement: Replacement) -> list[_Span]:
    old, new = replacement.old, replacement.new
    if "\r" in old:
        return [_Span(place, place + len(old), new) for place in places]
    if "\r" in new:
        return [_Span(view.source_index(place), view.source_index(place + len(old)), new) for place in places]
    # Leave the shared ends of old and new untouched, with whatever line breaks they have.
    head = _shared_head(old, new)
    tail = _shared_head(old[head:][::-1], new[head:][::-1])
    addition = new[head : len(new) - tail]
    spans = []
    for place in places:
        start, end = place + head, place + len(old) - tail
        spans.append(_Span(view.source_index(start), view.source_index(end), view.fitted(addition, start, end)))
    return spans


def _shared_head(one: str, other: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # bisection compares in C, a loop would compare one character at a time
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _spliced(source: str, spans: list[_Span]) -> str:
    parts, position = [], 0
    for span in spans:
        parts += [source[position : span.start], span.text]
        position = span.end
    return "".join([*parts, source[position:]])


# Explain to the model why a text was not found: the nearest place in the file, and how it differs. A near match is
# never edited. The work is bounded, whatever the sizes.

_MAX_LINES = 50_000
"""Most lines of the file that are compared."""
_MAX_LINE_CHARS = 400
_MAX_SHOWN_LINES = 12
_MAX_PAIRS = 4
_MIN_SCORE = 60.0
"""Similarity in percent below which a place is no help."""
_LINE_NUMBER = compile_late(r" *\d+\t")


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    lines: list[str]


def explain_missing(text: str, wanted: str) -> str:
    """Return advice behind "… was not found in FILE"; `text` is the file's, and does not hold `wanted`."""
    if "\r" in wanted and wanted.replace("\r\n", "\n") in text:
        return r'it is there with "\n" line breaks, so leave out the "\r"'
    bare = _without_line_numbers(wanted)
    if bare is not None and bare in text:
        return "leave out the line numbers and tabs that Read puts before each line"
    lines = text.split("\n")[:_MAX_LINES]
    wanted_lines = wanted.removesuffix("\n").split("\n")
    if place := _same_but_for_whitespace(lines, wanted_lines):
        return _tell_whitespace(place, wanted_lines)
    if place := _nearest(lines, wanted_lines):
        return _tell_nearest(place)
    return "nothing in the file is like it; Read the file again and copy the text exactly"


def _without_line_numbers(wanted: str) -> str | None:
    lines = wanted.split("\n")
    if any(line and not _LINE_NUMBER.match(line) for line in lines):
        return None
    return "\n".join(_LINE_NUMBER.sub("", line, count=1) for line in lines)


def _key(line: str) -> str:
    return "".join(line.split())


def _same_but_for_whitespace(lines: list[str], wanted: list[str]) -> _Place | None:
    """Return the first place that differs in nothing but blanks and tabs; its ends may lie within lines."""
    keys = [_key(line) for line in wanted]
    if not any(keys):
        return None
    last = len(keys) - 1
    file_keys = [_key(line) for line in lines]
    for start in range(len(lines) - last):
        if last == 0:
            is_same = keys[0] in file_keys[start]
        else:
            is_same = (
                file_keys[start].endswith(keys[0])
                and file_keys[start + last].startswith(keys[last])
                and file_keys[start + 1 : start + last] == keys[1:last]
            )
        if is_same:
            return _Place(start, lines[start : start + last + 1])
    return None


def _nearest(lines: list[str], wanted: list[str]) -> _Place | None:
    """Return the place that is most like the wanted lines.

    The longest of them are looked for one by one, and the block around each find is compared as a whole.
    """
    from rapidfuzz import fuzz, process

    cut = [line[:_MAX_LINE_CHARS] for line in lines]
    longest = sorted(range(len(wanted)), key=lambda number: -len(wanted[number].strip()))[:3]
    scorer = fuzz.partial_ratio if len(wanted) == 1 else fuzz.ratio
    best, best_score = None, _MIN_SCORE
    whole = "\n".join(wanted)[: _MAX_LINE_CHARS * 10]
    for number in longest:
        line = wanted[number][:_MAX_LINE_CHARS]
        if not line.strip():
            continue
        for _, _, found in process.extract(line, cut, scorer=scorer, limit=3, score_cutoff=_MIN_SCORE):
            start = max(0, found - number)
            block = lines[start : start + len(wanted)]
            score = scorer(whole, "\n".join(block)[: _MAX_LINE_CHARS * 10])
            if score > best_score:
                best, best_score = _Place(start, block), score
    return best


def _tell_whitespace(place: _Place, wanted: list[str]) -> str:
    pairs = [
        (place.start + 1 + at, there, asked)
        for at, (there, asked) in enumerate(zip(place.lines, wanted, strict=True))
        if not _agrees(there, asked, is_first=at == 0, is_last=at == len(wanted) - 1)
    ]
    if not pairs:
        return f"{_where(place)} has it, but without the line break at its end"
    told = [f"{_where(place)} differs only in whitespace (· is a space, → a tab):"]
    for number, there, asked in pairs[:_MAX_PAIRS]:
        told += [f"{number:>6}\tfile: {_visible(there)}", f"      \tyours: {_visible(asked)}"]
    if len(pairs) > _MAX_PAIRS:
        told.append(f"      \tand {len(pairs) - _MAX_PAIRS} more lines")
    return "\n".join(told)


def _agrees(there: str, asked: str, *, is_first: bool, is_last: bool) -> bool:
    """True if the line of the file is as asked; the text may begin and end within a line."""
    if is_first and is_last:
        return asked in there
    return there.endswith(asked) if is_first else there.startswith(asked) if is_last else there == asked


def _tell_nearest(place: _Place) -> str:
    told = [f"the nearest text is {_where(place)}, which reads:"]
    shown = place.lines[:_MAX_SHOWN_LINES]
    told += [f"{number:>6}\t{line[:_MAX_LINE_CHARS]}" for number, line in enumerate(shown, place.start + 1)]
    if len(place.lines) > len(shown):
        told.append(f"      \t… {len(place.lines) - len(shown)} more lines")
    told.append("Read that part again and copy it exactly")
    return "\n".join(told)


def _where(place: _Place) -> str:
    first, last = place.start + 1, place.start + len(place.lines)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _visible(line: str) -> str:
    return line[:_MAX_LINE_CHARS].replace("\t", "→").replace(" ", "·").replace("\r", "␍").replace("\u00a0", "⍽")
