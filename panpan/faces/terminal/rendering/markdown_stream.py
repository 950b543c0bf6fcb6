"""Markdown as it streams in: lines that are finished, each once, and the unfinished rest to be shown meanwhile."""

import re

from panpan.faces.terminal.rendering.leaf_blocks import LeafBlocks
from panpan.faces.terminal.rendering.markdown_blocks import MAX_CHARS, BlockScanner
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal

# Text of others made harmless while it arrives in pieces: a sequence may be split over several of them.
#
# The rule: joined, what comes out is what `clean_for_terminal` makes of the whole, wherever it was split.

_BEGUN = re.compile(
    r"""
    (?: (?:\x1b\[|\x9b) [\x30-\x3f]* [\x20-\x2f]*                         # CSI
      | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\x1b\x80-\x9f\n]* \x1b?  # OSC and the like
      | \x1b [\x20-\x2f]*
    ) \Z
    """,
    re.VERBOSE,
)
"""A sequence that the next piece may end."""
_GOES_ON = (
    (re.compile(r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x1b]*\Z"), re.compile(r"[^\x07\x1b\x80-\x9f\n]*")),
    (re.compile(r"(?:\x1b\[|\x9b)[\x30-\x3f]*\Z"), re.compile(r"[\x30-\x3f]*")),
    (re.compile(r"[^\x20-\x2f]*[\x20-\x2f]+\Z"), re.compile(r"[\x20-\x2f]*")),
)
"""The beginning of a sequence, and pieces that make it longer and do not end it, for good or bad."""


class CleanStream:
    """Makes pieces harmless and holds back the beginning of a sequence at the end of one."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._goes_on: re.Pattern[str] | None = None
        """Pieces that are held back, too, unread: so a sequence that never ends is not searched again and again."""
        self._was_return = False
        """Whether a carriage return came last and was passed on as a newline: a newline after it is the same one."""

    def feed(self, text: str) -> str:
        """Return what of the text so far is sure and was not returned yet."""
        if not self._held and not self._was_return and text.isprintable():
            return clean_for_terminal(text)
        self._held.append(text)
        if self._goes_on and self._goes_on.fullmatch(text):
            return ""
        text = "".join(self._held)
        begun = _BEGUN.search(text)
        end = begun.start() if begun else len(text)
        self._held = [text[end:]] if begun else []
        self._goes_on = next((more for begin, more in _GOES_ON if begin.match(text, end)), None) if begun else None
        return self._cleaned(text[:end])

    def finish(self) -> str:
        """Return what was held back; nothing more comes."""
        held, self._held, self._goes_on = "".join(self._held), [], None
        return self._cleaned(held)

    def _cleaned(self, text: str) -> str:
        was_return = self._was_return
        if was_return:
            text = "\r" + text
        cleaned = clean_for_terminal(text)
        self._was_return = "\r" in text and clean_for_terminal(text + "\n") == cleaned
        return cleaned[1:] if was_return else cleaned


TAIL_ROWS = 20
NARROWEST = 4
"""Cells; a terminal that says less is taken to have that."""

_TAB = 4
_SENTENCE_END = re.compile(r"[.!?:;]\)? (?=[^\W\d_])")
_WORD_END = re.compile(r" (?=[^\W\d_])")
"""Behind it comes a letter: what is printed in pieces must not go on as a list or a heading."""


class MarkdownStream:
    """Renders one text of the model. The work for a piece of it does not grow with what came before.

    Args:
        width: Cells of a row.
        theme: How it looks.
    """

    def __init__(self, width: int, theme: Theme) -> None:
        self._clean = CleanStream()
        self._scanner = BlockScanner(max(width, NARROWEST), theme, LeafBlocks(theme))
        self._open_line = ""
        self._tail: list[str] | None = None
        """What `tail` returned last, until something changes: it is asked for with every frame."""

    def feed(self, text: str) -> list[str]:
        """Take what came, and return the rows that are finished with it."""
        self._tail = None
        return self._take(self._clean.feed(text))

    def tail(self) -> list[str]:
        """Return the rows of what is not finished, the last `TAIL_ROWS` at most."""
        if self._tail is None:
            scanner = self._scanner.twin()
            rows = scanner.take(_without_tabs(self._open_line)) if self._open_line else []
            self._tail = [*rows, *scanner.finish()][-TAIL_ROWS:]
        return self._tail

    def finish(self) -> list[str]:
        """Return the rows that are left; the text is over."""
        self._tail = None
        rows = self._take(self._clean.finish())
        if self._open_line:
            rows += self._scanner.take(_without_tabs(self._open_line))
            self._open_line = ""
        return [*rows, *self._scanner.finish()]

    def resize(self, width: int) -> None:
        """Use another width for what is not returned yet."""
        if self._scanner.width != max(width, NARROWEST):
            self._scanner.width, self._tail = max(width, NARROWEST), None

    def _take(self, text: str) -> list[str]:
        rows: list[str] = []
        *lines, rest = text.split("\n")
        for line in lines:
            rows += self._grow(line)
            rows += self._scanner.take(_without_tabs(self._open_line))
            self._open_line = ""
        return rows + self._grow(rest)

    def _grow(self, text: str) -> list[str]:
        """Make the open line longer; return the rows of those pieces for which it has become too long."""
        rows: list[str] = []
        self._open_line += text
        while len(self._open_line) > MAX_CHARS:
            end, begin = (MAX_CHARS, MAX_CHARS) if self._scanner.is_in_code else _cut(self._open_line)
            rows += self._scanner.take(_without_tabs(self._open_line[:end]))
            rows += self._scanner.flush()
            self._open_line = self._scanner.source_prefix + self._open_line[begin:]
        return rows


def _cut(line: str) -> tuple[int, int]:
    """Return where the first piece of a long line ends, and where the next one begins."""
    for place in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in place.finditer(line, MAX_CHARS // 2, MAX_CHARS)]
        if ends:
            return ends[-1] - 1, ends[-1]
    return MAX_CHARS, MAX_CHARS


def _without_tabs(line: str) -> str:
    return line.expandtabs(_TAB)
