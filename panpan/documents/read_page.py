"""One page of a text file: numbered lines, cut if they are endless, and the place to go on from.

The file is in memory once; its lines are found by searching and never all taken apart. Synchronous.
"""

from collections.abc import Iterator

from panpan.errors import ToolError
from panpan.system.text.file_text import FileText, readable
from panpan.types.dataclass import dataclass

MAX_LINE_CHARS = 2_000
MAX_PAGE_CHARS = 58_000
"""Most characters of a page, so that it stays below what a result may have."""

_STRETCH_CHARS = 65_536


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of a file, as the model reads them."""

    text: str
    first: int
    last: int
    """Number of the last line; less than `first` where there is none."""
    total: int

    @property
    def summary(self) -> str:
        """The page in a few words, for people."""
        count = self.last - self.first + 1
        if count == self.total:
            return f"{count:,} line{'s' * (count != 1)}"
        return f"lines {self.first:,}-{self.last:,} of {self.total:,}"


def read_page(file_text: FileText, offset: int, limit: int, shown: str) -> Page:
    """Return the lines from number `offset` on, `limit` at most. Raise ToolError if the file has no such line."""
    text = file_text.text
    line_break = "\r" if "\r" in text and "\n" not in text else "\n"
    total = text.count(line_break) + (not text.endswith(line_break)) if text else 0
    notes = [] if file_text.encoding.is_plain else [f"({_encoding_note(file_text)})"]
    if not text:
        return Page("\n".join([f"({shown} is empty)", *notes]), 1, 0, 0)
    first = max(offset, 1)
    if first > total:
        raise ToolError(f"{shown} has only {total:,} line{'s' * (total != 1)}; offset {first:,} is past its end")
    numbered: list[str] = []
    size = 0
    for number, line in enumerate(_lines(text, line_break, first), first):
        line = line.removesuffix("\r")
        if len(line) > MAX_LINE_CHARS:
            line = f"{line[:MAX_LINE_CHARS]}… (line cut; {len(line) - MAX_LINE_CHARS:,} more characters)"
        numbered.append(f"{number:>6}\t{line}")
        size += len(line) + 8
        if len(numbered) >= limit or size > MAX_PAGE_CHARS - MAX_LINE_CHARS:
            break
    last = first + len(numbered) - 1
    if last < total:
        notes.append(f"(lines {first}-{last} of {total}; go on with offset={last + 1})")
    return Page("\n".join([readable("\n".join(numbered)), *notes]), first, last, total)


def _lines(text: str, line_break: str, first: int) -> Iterator[str]:
    """Yield the lines from number `first` on, taking apart one stretch of the text at a time."""
    start = _start_of_line(text, line_break, first)
    while start < len(text):
        end = text.find(line_break, start + _STRETCH_CHARS)
        if end < 0:
            yield from text[start:].removesuffix(line_break).split(line_break)
            return
        yield from text[start:end].split(line_break)
        start = end + 1


def _start_of_line(text: str, line_break: str, number: int) -> int:
    """Return where line `number` begins; whole stretches are counted, so that millions of lines are passed quickly."""
    start, missing = 0, number - 1
    while missing:
        count = text.count(line_break, start, start + _STRETCH_CHARS)
        if count < missing:
            start += _STRETCH_CHARS
            missing -= count
            continue
        for _ in range(missing):
            start = text.index(line_break, start) + 1
        missing = 0
    return start


def _encoding_note(file_text: FileText) -> str:
    encoding = file_text.encoding
    if encoding.is_damaged:
        return "not valid UTF-8: damaged bytes are shown as \ufffd, and kept by edits elsewhere"
    return f"not UTF-8; read as {encoding.label}" if encoding.is_guess else f"encoding: {encoding.label}"
