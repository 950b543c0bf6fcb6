r"""Replacing one text by another in a file's text: literal, exact, and never at a place that is not certain.

No regular expressions, no trimming, no nearest match: what is not there exactly is an error that shows what is. The one
liberty is the line break, since a model writes "\n" for every kind; texts in which it writes "\r" itself are taken as
they are.
"""

from panpan.capabilities.files.file_text import FileText
from panpan.capabilities.files.line_breaks import LineBreakView
from panpan.capabilities.files.nearest_text import explain_missing
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

MAX_TEXT_CHARS = 20_000_000
"""Most characters that a file may have after an edit."""
_MAX_LISTED_LINES = 8
_MAX_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replacement that the model asks for."""

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    """A place in the source text and what comes there."""

    start: int
    end: int
    text: str


def replace_text(file_text: FileText, replacement: Replacement, shown: str) -> tuple[FileText, int]:
    """Return the text with `replacement` made, and how many times it was made.

    Args:
        file_text: What the file says.
        replacement: What to replace; its `old` is not empty.
        shown: Name of the file, for the messages.

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
        _check_size(haystack, replacement, count, shown)
    else:
        _require_single(haystack, old, shown)
        count = 1
    if replacement.replace_all and haystack == view.source:  # nothing to fit
        source = haystack.replace(old, new)
    else:
        source = _spliced(view.source, _spans(view, _places(haystack, old, count), replacement))
    if source == view.source:
        raise ToolError(f"the edit leaves {shown} as it is: the text there already reads like new_string")
    return FileText(source, file_text.encoding), count


def _require_single(haystack: str, old: str, shown: str) -> None:
    first = haystack.find(old)
    if first < 0:
        raise _missing(haystack, old, shown)
    if haystack.find(old, first + 1) >= 0:  # overlapping ones count: either could be meant
        raise ToolError(_ambiguous(haystack, old, shown))


def _missing(haystack: str, old: str, shown: str) -> ToolError:
    return ToolError(f"old_string was not found in {shown}{explain_missing(haystack, old)}")


def _places(haystack: str, old: str, count: int) -> list[int]:
    """Return where the first `count` occurrences begin that do not overlap the one before."""
    places: list[int] = []
    place = 0
    for _ in range(count):
        place = haystack.index(old, place)
        places.append(place)
        place += len(old)
    return places


def _ambiguous(haystack: str, old: str, shown: str) -> str:
    """Say how often and in which lines `old` is there."""
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
    return (
        f"old_string is ambiguous: it occurs {times} in {shown}, at line{'s' * (len(lines) > 1)} {listed}; "
        "include more of the lines around the right place, or set replace_all to change every one"
    )


def _check_size(haystack: str, replacement: Replacement, count: int, shown: str) -> None:
    size = len(haystack) + count * (len(replacement.new) - len(replacement.old))
    if size > MAX_TEXT_CHARS:
        raise ToolError(f"{shown} would grow to {size:,} characters; at most {MAX_TEXT_CHARS:,} can be edited")


def _spans(view: LineBreakView, places: list[int], replacement: Replacement) -> list[_Span]:
    """Return what changes in the source text where the old text begins at each of `places`."""
    old, new = replacement.old, replacement.new
    if "\r" in old:
        return [_Span(place, place + len(old), new) for place in places]
    if "\r" in new:
        return [_Span(view.source_index(place), view.source_index(place + len(old)), new) for place in places]
    # What old and new share at their ends stays untouched, with whatever line breaks it has.
    head = _shared_head(old, new)
    tail = _shared_head(old[head:][::-1], new[head:][::-1])
    addition = new[head : len(new) - tail]
    spans = []
    for place in places:
        start, end = place + head, place + len(old) - tail
        spans.append(_Span(view.source_index(start), view.source_index(end), view.fitted(addition, start, end)))
    return spans


def _shared_head(one: str, other: str) -> int:
    """Return how many characters two texts share at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # halving compares in C what a loop would compare a character at a time
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
