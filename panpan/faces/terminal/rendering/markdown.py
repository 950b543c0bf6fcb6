"""Streaming Markdown: each row is returned once, as soon as nothing that follows can change it."""

import re
from collections.abc import Sequence
from copy import copy

from panpan.faces.terminal.rendering.cells import break_line, cut
from panpan.faces.terminal.rendering.leaf_blocks import Kind, LeafBlocks, OpenCode, OpenTable, lexer_for
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

# Container blocks of Markdown: list items and quotations.
#
# A container decides for each line of the source if the line continues it, and puts a prefix before each row of output.

_ITEM = compile_late(r"( {0,3})([-+*]|(\d{1,9})([.)]))( +|$)")
_QUOTE = compile_late(r" {0,3}> ?")
_TASK = compile_late(r"\[([ xX])\] +")


@dataclass(slots=True)
class Container:
    """An open list item or quotation."""

    first: str
    """Prefix of its first row."""
    rest: str
    """Prefix of each other row."""
    indent: int = 0
    """Column of an item's content in the source; 0 for a quotation."""
    number: int | None = None
    delimiter: str = ""
    """Delimiter after an item's number, or its bullet."""
    is_begun: bool = False
    """True if its first row is printed."""

    @property
    def source_prefix(self) -> str:
        return " " * self.indent or "> "

    @property
    def width(self) -> int:
        return cell_width(self.rest)

    def content(self, line: str, *, is_in_code: bool) -> str | None:
        """Return the content of a line inside this container; None if the line ends the container.

        `line` is without the prefixes of outer containers. A wrongly indented line of code does not end it.
        """
        if not self.indent:
            match = _QUOTE.match(line)
            return line[match.end() :] if match else None
        blanks = len(line) - len(line.lstrip(" "))
        if blanks >= self.indent or blanks == len(line):
            return line[self.indent :]
        return line[blanks:] if is_in_code else None

    def prefix(self) -> str:
        """Return the prefix of the next row."""
        if self.is_begun:
            return self.rest
        self.is_begun = True
        return self.first


def opened_quote(line: str, theme: Theme) -> tuple[Container, str] | None:
    """Return the quotation that a line begins, and the line's content in it."""
    match = _QUOTE.match(line)
    if match is None:
        return None
    bar = theme.paint("dim", "│") + " " if theme.has_colour else "> "
    return Container(bar, bar), line[match.end() :]


def opened_item(
    line: str, before: Container | None, *, is_in_paragraph: bool, theme: Theme
) -> tuple[Container, str] | None:
    """Return the list item that a line begins, and the line's content in it.

    `before` is the item that ended just before, from which numbers count on. In a paragraph, a number at the beginning
    of a line may be part of the text.
    """
    match = _ITEM.match(line)
    if match is None:
        return None
    is_empty = match.end() == len(line) and not line[match.end() :].strip()
    source_number = int(match[3]) if match[3] else None
    if is_in_paragraph and (is_empty or source_number not in (None, 1)):
        return None
    blanks = len(match[5])
    end = match.end(2) + (blanks if 1 <= blanks <= 4 and not is_empty else 1)
    content = line[end:]
    delimiter = match[4] or match[2]
    number = source_number
    if before and before.number is not None and number is not None and before.delimiter == delimiter:
        number = before.number + 1
    mark = "•" if number is None else f"{number}{delimiter}"
    if number is None and (task := _TASK.match(content)):
        mark, content = ("☐" if task[1] == " " else "☑"), content[task.end() :]
    first, rest = theme.paint("accent", mark) + " ", " " * (len(mark) + 1)
    return Container(first, rest, end, number, delimiter), content


# Takes the lines of a Markdown text one by one and returns rows as soon as nothing that follows can change them.
#
# A line of code is returned in one piece and without an indent, so that it can be copied as it is: in the scrollback
# the terminal breaks it, and copies it as one line. There is a rule with the language above a block, and a rule below
# it. If rows are redrawn and so have to be counted, lines of code are broken here.
#
# Only the innermost open block is kept, and at most `MAX_CHARS` of it. So the work for a line does not grow with the
# text before it, even in one long list, table or block of code. The output depends only on the lines, not on their
# timing.

MAX_CHARS = 3_000
"""Most characters of a paragraph, table or line; a longer one is printed in pieces."""

_MAX_DEPTH = 8
"""Most nested containers; deeper ones are shown as source."""
_RULE_CELLS = 40
"""Cells of the rules around code: few, so that they fit a row if the window becomes narrower."""
_NARROWEST = 16
"""Fewest cells that containers leave for their content."""

_FENCE = compile_late(r" {0,3}(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_HEADING = compile_late(r" {0,3}#{1,6}( |$)")
_RULE = compile_late(r" {0,3}([-_*])( *\1){2,} *$")
_BEGINS_BLOCK = compile_late(r" {0,3}([-+*]( |$)|\d{1,9}[.)]( |$)|>|#{1,6}( |$)|`{3,}|~{3,})")
_STANDS_ALONE: frozenset[Kind] = frozenset({"heading", "code", "table"})
_NEEDS_ROOM_BELOW: frozenset[Kind] = frozenset({"code", "table"})


class BlockScanner:
    """Splits one text into blocks, line by line."""

    def __init__(self, width: int, theme: Theme, leaves: LeafBlocks, *, breaks_code: bool) -> None:
        self._width = width
        self._breaks_code = breaks_code
        self._theme = theme
        self._leaves = leaves
        self._containers: list[Container] = []
        self._pending: list[str] = []
        """Lines of the open leaf block, without the prefixes of the containers."""
        self._pending_chars = 0
        """Characters in `_pending`, including line ends."""
        self._code: OpenCode | None = None
        self._fence = ""
        """Mark that ends the open block of code."""
        self._table: OpenTable | None = None
        self._item_before: Container | None = None
        """Item that ended last, as long as nothing came after it."""
        self._is_after_blank = False
        self._last_kind: Kind | None = None
        """Kind of the block printed last."""
        self._goes_on = False
        """True if the beginning of the open leaf block was printed last."""

    def resize(self, width: int) -> bool:
        """Set the width for later rows, and return True if it has changed."""
        before, self._width = self._width, width
        return width != before

    @property
    def is_in_code(self) -> bool:
        return self._code is not None

    @property
    def source_prefix(self) -> str:
        """Beginning of a line of source that continues all open containers."""
        return "".join(container.source_prefix for container in self._containers)

    def take(self, line: str) -> list[str]:
        """Return the rows that are finished with this line, which is cleaned and without tabs."""
        kept, content = self._inside(line)
        if kept == len(self._containers):
            return self._content(content)
        if self._is_lazy(content):
            return self._add(content)
        return [*self._leave(kept), *self._content(content)]

    def flush(self) -> list[str]:
        """Return the rows of the open leaf block; a continuation becomes a block of its own."""
        if self._code is not None:
            return self._print_part("code", self._broken(self._code.ended()))
        lines, self._pending, self._pending_chars = self._pending, [], 0
        if not lines:
            return []
        found, self._table = self._leaves.render(lines, self._room, self._table)
        parts = ((leaf.kind, self._broken(leaf.rows) if leaf.kind == "code" else leaf.rows) for leaf in found)
        return [row for kind, rows in parts for row in self._print_part(kind, rows)]

    def finish(self) -> list[str]:
        """Return the remaining rows at the end of the text."""
        return self._leave(0) if self._containers else self._end_leaf()

    def twin(self) -> "BlockScanner":
        """Return a copy whose rows all fit the width."""
        twin = copy(self)
        twin._breaks_code = True
        twin._containers, twin._pending = [copy(container) for container in self._containers], list(self._pending)
        twin._code = copy(self._code)
        return twin

    def _inside(self, line: str) -> tuple[int, str]:
        """Return the number of containers that a line continues, and the line's content in them."""
        for depth, container in enumerate(self._containers):
            content = container.content(line, is_in_code=self.is_in_code)
            if content is None:
                return depth, line
            line = content
        return len(self._containers), line

    def _is_lazy(self, line: str) -> bool:
        """Return True if a line continues a paragraph although it lacks the prefixes of the containers."""
        is_in_text = (bool(self._pending) or self._goes_on) and self._code is None and self._table is None
        return is_in_text and bool(line.strip()) and not _BEGINS_BLOCK.match(line) and not _RULE.match(line)

    def _content(self, line: str) -> list[str]:
        if self._code is not None:
            return self._code_line(self._code, line)
        if not line.strip():
            rows = self._end_leaf()
            self._is_after_blank = True
            return rows
        if _RULE.match(line) or _HEADING.match(line):
            rows = [] if _RULE.match(line) else self._end_leaf()  # dashes below a paragraph make it a heading
            self._pending.append(line)
            return [*rows, *self._end_leaf()]
        if fence := _FENCE.match(line):
            return self._open_code(fence)
        if opened := self._opened(line):
            rows = self._end_leaf()
            self._containers.append(opened[0])
            self._item_before = None
            return [*rows, *(self._content(opened[1]) if opened[1].strip() else [])]
        return self._add(line)

    def _add(self, line: str) -> list[str]:
        """Add a line to the open leaf block; return its rows if it has become too long."""
        self._pending.append(line)
        self._pending_chars += len(line) + 1
        return self.flush() if self._pending_chars > MAX_CHARS else []

    def _opened(self, line: str) -> tuple[Container, str] | None:
        if len(self._containers) >= _MAX_DEPTH or self._room <= _NARROWEST:
            return None
        return opened_quote(line, self._theme) or opened_item(
            line, self._item_before, is_in_paragraph=bool(self._pending), theme=self._theme
        )

    def _open_code(self, fence: re.Match[str]) -> list[str]:
        rows = self._end_leaf()
        language = fence["info"].strip().split(" ")[0]
        self._code = OpenCode(self._theme, lexer_for(language) if language and self._theme.has_colour else None)
        self._fence = fence["mark"]
        return [*rows, *self._print_part("code", [self._edge(fence["info"].rstrip(), language)])]

    def _code_line(self, code: OpenCode, line: str) -> list[str]:
        mark = line.strip(" ")
        if mark and not mark.strip(self._fence[0]) and len(mark) >= len(self._fence):
            return self._end_leaf()
        return self._print_part("code", self._broken(code.add(line)))

    def _end_leaf(self) -> list[str]:
        """End the open leaf block, and return its rows."""
        rows = self.flush()
        if self._code is not None:
            self._code = None
            rows += self._print_part("code", [self._edge()])
        self._table = None
        self._goes_on = False
        return rows

    def _leave(self, depth: int) -> list[str]:
        """End the containers from `depth` on, and return the rows of their open blocks."""
        rows = self._end_leaf()
        if not self._containers[-1].is_begun:
            rows += self._print("text", [""])  # an empty item
        self._item_before = self._containers[depth]
        del self._containers[depth:]
        return rows

    @property
    def _room(self) -> int:
        return self._width - sum(container.width for container in self._containers)

    def _edge(self, info: str = "", language: str = "") -> str:
        """Return the row above or below a block of code; without colours it is the fence."""
        if not self._theme.has_colour:
            return cut(self._fence + info, self._room)
        width = min(_RULE_CELLS, self._room)
        label = cut(f"── {language} ", width) if language else ""
        return self._theme.paint("dim", label + "─" * (width - cell_width(label)))

    def _broken(self, lines: Sequence[str]) -> Sequence[str]:
        if not self._breaks_code:
            return lines
        return [row for line in lines for row in break_line(line, self._room)]

    def _print_part(self, kind: Kind, rows: Sequence[str]) -> list[str]:
        """Return the rows of the open leaf block or a part of it."""
        printed = self._print(kind, rows)
        self._goes_on = self._goes_on or bool(printed)
        return printed

    def _print(self, kind: Kind, rows: Sequence[str]) -> list[str]:
        """Return rows with the prefixes of the containers, and an empty row above if one is due."""
        if not rows:
            return []
        is_apart = self._is_after_blank or kind in _STANDS_ALONE or self._last_kind in _NEEDS_ROOM_BELOW
        printed = []
        if self._last_kind is not None and is_apart and not self._goes_on:
            printed.append("".join(container.rest for container in self._containers if container.is_begun).rstrip(" "))
        for row in rows:
            prefix = "".join(container.prefix() for container in self._containers)
            printed.append((prefix + row).rstrip(" "))
        self._item_before = None
        self._is_after_blank = self._goes_on = False
        self._last_kind = kind
        return printed


TAIL_ROWS = 20
NARROWEST = 4
"""Fewest cells of a row; a narrower terminal is treated as this wide."""

_TAB = 4
_SENTENCE_END = compile_late(r"[.!?:;]\)? (?=[^\W\d_])")
_WORD_END = compile_late(r" (?=[^\W\d_])")
"""A blank before a letter: the next piece of a long line must not look like a list item or a heading."""


class MarkdownStream:
    """Renders one text of the model; the work for a piece does not grow with the text before it.

    Args:
        width: Cells of a row.
        theme: Colours.
        breaks_code: False to return a line of code as one row, even if it is wider; the terminal then breaks it.
    """

    def __init__(self, width: int, theme: Theme, *, breaks_code: bool = True) -> None:
        self._clean = CleanStream()
        self._scanner = BlockScanner(max(width, NARROWEST), theme, LeafBlocks(theme), breaks_code=breaks_code)
        self._open_line = ""
        self._tail: list[str] | None = None
        """Cached result of `tail`, which is called for every frame; None after a change."""

    def feed(self, text: str) -> list[str]:
        """Add a piece of text, and return the rows that are finished with it."""
        self._tail = None
        return self._take(self._clean.feed(text))

    def tail(self) -> list[str]:
        """Return the unfinished rows, at most the last `TAIL_ROWS`."""
        if self._tail is None:
            scanner = self._scanner.twin()
            rows = scanner.take(self._open_line.expandtabs(_TAB)) if self._open_line else []
            self._tail = [*rows, *scanner.finish()][-TAIL_ROWS:]
        return self._tail

    def finish(self) -> list[str]:
        """Return the remaining rows at the end of the text."""
        self._tail = None
        rows = self._take(self._clean.finish())
        if self._open_line:
            rows += self._scanner.take(self._open_line.expandtabs(_TAB))
            self._open_line = ""
        return [*rows, *self._scanner.finish()]

    def resize(self, width: int) -> None:
        """Set the width of rows that are not returned yet."""
        if self._scanner.resize(max(width, NARROWEST)):
            self._tail = None

    def _take(self, text: str) -> list[str]:
        rows: list[str] = []
        *lines, rest = text.split("\n")
        for line in lines:
            rows += self._grow(line)
            rows += self._scanner.take(self._open_line.expandtabs(_TAB))
            self._open_line = ""
        return rows + self._grow(rest)

    def _grow(self, text: str) -> list[str]:
        """Extend the open line; if it becomes too long, return the rows of its first pieces."""
        rows: list[str] = []
        self._open_line += text
        while len(self._open_line) > MAX_CHARS:
            end, begin = (MAX_CHARS, MAX_CHARS) if self._scanner.is_in_code else _cut(self._open_line)
            rows += self._scanner.take(self._open_line[:end].expandtabs(_TAB))
            rows += self._scanner.flush()
            self._open_line = self._scanner.source_prefix + self._open_line[begin:]
        return rows


def _cut(line: str) -> tuple[int, int]:
    """Return the index of the end of a long line's first piece, and of the beginning of the next."""
    for place in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in place.finditer(line, MAX_CHARS // 2, MAX_CHARS)]
        if ends:
            return ends[-1] - 1, ends[-1]
    return MAX_CHARS, MAX_CHARS


_BEGUN = compile_late(
    r"""
    (?: (?:\x1b\[|\x9b) [\x30-\x3f]* [\x20-\x2f]*                         # CSI
      | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\x1b\x80-\x9f\n]* \x1b?  # OSC and the like
      | \x1b [\x20-\x2f]*
    ) \Z
    """,
    re.VERBOSE,
)
"""The beginning of a sequence at the end of a piece."""
_GOES_ON = (
    (compile_late(r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x1b]*\Z"), compile_late(r"[^\x07\x1b\x80-\x9f\n]*")),
    (compile_late(r"(?:\x1b\[|\x9b)[\x30-\x3f]*\Z"), compile_late(r"[\x30-\x3f]*")),
    (compile_late(r"[^\x20-\x2f]*[\x20-\x2f]+\Z"), compile_late(r"[\x20-\x2f]*")),
)
"""Beginnings of sequences, each with a pattern for pieces that only make it longer."""


class CleanStream:
    """Cleans text piece by piece, and holds back an unfinished sequence at the end of a piece."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._goes_on: re.Pattern[str] | None = None
        """Pattern of pieces that are also held back; so an endless sequence is not searched again and again."""
        self._was_return = False
        """True if the last character was a carriage return, passed on as a newline; a newline after it is dropped."""

    def feed(self, text: str) -> str:
        """Return the new text that is certain."""
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
        """Return the text that was held back, at the end of the text."""
        held, self._held, self._goes_on = "".join(self._held), [], None
        return self._cleaned(held)

    def _cleaned(self, text: str) -> str:
        was_return = self._was_return
        if was_return:
            text = "\r" + text
        cleaned = clean_for_terminal(text)
        self._was_return = "\r" in text and clean_for_terminal(text + "\n") == cleaned
        return cleaned[1:] if was_return else cleaned
