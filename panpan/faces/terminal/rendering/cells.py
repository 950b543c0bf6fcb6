"""Lines with SGR sequences, measured, cut and wrapped in terminal cells.

Widths are never measured too small: if terminals differ, as with joined emoji, the widest counts. So a row that fits
here fits everywhere. Neither sequences nor grapheme clusters are ever split. All text must be cleaned already and
without tabs. Below: rows of plain text and Markdown, and lists to pick from.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from wcwidth import iter_graphemes

from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.role import Role

RESET = "\x1b[0m"
_SPLIT_AT_SGR = compile_late(r"(\x1b\[[0-9;:]*m)")
_PARTS = compile_late(r"\x1b\[[0-9;:]*m|\n| +|[^\x1b\n ]+")
_ONE_WORD = compile_late("[!-~]+")


def cut(text: str, width: int) -> str:
    """Return one line cut to at most `width` cells, with an ellipsis if something is left out."""
    if cell_width(text) <= width:
        return text
    if width < 1:
        return ""
    pieces: list[str] = []
    used, is_styled = 0, False
    for piece in _clusters(text, width):
        if piece.startswith("\x1b"):
            is_styled = not _is_reset(piece)
        else:
            used += cell_width(piece)
            if used > width - 1:
                break
        pieces.append(piece)
    return "".join(pieces) + "…" + (RESET if is_styled else "")


def pad_to_width(text: str, width: int) -> str:
    """Return one line filled with blanks up to `width` cells."""
    return text + " " * (width - cell_width(text))


def break_line(line: str, width: int) -> list[str]:
    """Return one line of code or a command as rows of at most `width` cells, 2 or more, without losing a character.

    Rows break before a word, or within a word that is longer than a row.
    """
    return [line] if cell_width(line) <= width else _filled(line, width, keeps_blanks=True)


def wrap_text(text: str, width: int) -> list[str]:
    """Return prose as rows of at most `width` cells, 2 or more, broken between words, or within overlong ones.

    A newline begins a row. Blanks at the beginning of a line stay, those at the end of a row go.
    """
    return _filled(text, width, keeps_blanks=False)


def wrapped_under_indent(text: str, width: int) -> list[str]:
    """Return rows as `wrap_text` does, for 4 cells or more; continuation rows keep the indent of their line.

    An indent takes at most half of a row.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        if cell_width(line) <= width:
            rows.append(line.rstrip(" "))
            continue
        words = line.lstrip(" ")
        indent = " " * min(len(line) - len(words), width // 2)
        rows += (f"{indent}{row}" if row else "" for row in wrap_text(words, width - len(indent)))
    return rows


def _filled(text: str, width: int, *, keeps_blanks: bool) -> list[str]:
    if _ONE_WORD.fullmatch(text):  # fast path, such as for a page of JSON without a blank
        return [text[at : at + width] for at in range(0, len(text), max(width, 1))]
    filler = _Filler(width, keeps_blanks=keeps_blanks)
    for match in _PARTS.finditer(text):
        filler.take(match[0])
    return filler.ended()


class _Rows:
    """Rows that are being filled; styles that are open at the end of a row go on in the next one."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.used = 0
        self._rows: list[str] = []
        self._row: list[str] = []
        self._style = ""

    def place(self, piece: str, width: int) -> None:
        """Append a piece, on a new row if it does not fit; sequences have no width."""
        if piece.startswith("\x1b"):
            self._style = "" if _is_reset(piece) else self._style + piece
        elif self.used and self.used + width > self.width:
            self.end_row()
        self._row.append(piece)
        self.used += width

    def end_row(self) -> None:
        if self._style:
            self._row.append(RESET)
        self._rows.append("".join(self._row))
        self._row = [self._style] if self._style else []
        self.used = 0

    def ended(self) -> list[str]:
        self.end_row()
        return self._rows


class _Filler:
    """Fills rows with words. A word may contain sequences, and goes to the next row as a whole."""

    def __init__(self, width: int, *, keeps_blanks: bool) -> None:
        self._rows = _Rows(width)
        self._keeps_blanks = keeps_blanks
        self._gap = 0
        """Blanks before the word; dropped at the end of a row unless blanks are kept."""
        self._word: list[str] = []
        self._word_width = 0

    def take(self, part: str) -> None:
        """Add a sequence, a newline, blanks, or text without any of them."""
        if part == "\n":
            self._end_word()
            self._rows.end_row()
            self._gap = 0
        elif part.startswith(" "):
            self._end_word()
            self._gap += len(part)
            if self._keeps_blanks:
                self._place_gap()
        elif part.startswith("\x1b"):
            self._word.append(part)
        else:
            for piece in [part] if part.isascii() else _clusters(part, self._rows.width):
                width = cell_width(piece)
                is_wide = width > 1 and not piece.isascii()
                if is_wide:  # scripts of wide characters have no blanks: a row may end before and after each
                    self._end_word()
                self._word.append(piece)
                self._word_width += width
                if is_wide:
                    self._end_word()

    def ended(self) -> list[str]:
        self._end_word()
        return self._rows.ended()

    def _end_word(self) -> None:
        if not self._word:
            return
        rows = self._rows
        is_too_long = self._word_width > rows.width
        if self._word_width and rows.used + self._gap + self._word_width > rows.width:
            if rows.used and not (is_too_long and self._keeps_blanks):
                rows.end_row()
            self._gap = 0
        if self._word_width:
            self._place_gap()
        for word in self._word:
            for piece in _clusters(word, rows.width) if is_too_long else [word]:
                rows.place(piece, cell_width(piece))
        self._word, self._word_width = [], 0

    def _place_gap(self) -> None:
        for _ in range(self._gap):
            self._rows.place(" ", 1)
        self._gap = 0


def _clusters(text: str, width: int) -> Iterator[str]:
    """Yield sequences and grapheme clusters, none wider than a row unless it is one wide character."""
    for piece in _SPLIT_AT_SGR.split(text):
        if piece.startswith("\x1b"):
            yield piece
        elif piece.isascii():
            yield from piece
        else:
            for cluster in iter_graphemes(piece):
                if cell_width(cluster) <= width:
                    yield cluster
                else:
                    yield from cluster  # a chain of joined emoji that is wider than a row


def _is_reset(sequence: str) -> bool:
    return sequence in (RESET, "\x1b[m")


def fitting(parts: Sequence[tuple[str, int]], width: int, separator: str) -> list[int]:
    """Return the indexes of the texts that fit into a row, in order; the highest ranks are left out first."""
    kept: list[int] = []
    for index in sorted(range(len(parts)), key=lambda index: parts[index][1]):
        needed = cell_width(parts[index][0]) + (cell_width(separator) if kept else 0)
        if needed <= width:
            kept.append(index)
            width -= needed
    return sorted(kept)


def fit_parts(parts: Sequence[tuple[str, int]], width: int, separator: str) -> str:
    """Return the texts that fit, in one row; empty if none does."""
    return separator.join(parts[index][0] for index in fitting(parts, width, separator))


LEAST_WIDTH = 20
"""Fewest cells that rows are laid out for; a narrower terminal breaks the rows itself."""
_TAB_CELLS = 4


def plain_rows(text: str, width: int) -> list[str]:
    """Return cleaned rows of at most `width` cells, 4 or more; words stay whole if they fit, and indents stay."""
    return wrapped_under_indent(clean_for_terminal(text).expandtabs(_TAB_CELLS), width)


def markdown_rows(text: str, width: int, theme: Theme) -> list[str]:
    """Return the rows of a Markdown text of the model, without escape sequences of its own."""
    from panpan.faces.terminal.rendering.markdown import MarkdownStream  # the first screen does not need it

    stream = MarkdownStream(width, theme)
    return [*stream.feed(text), *stream.finish()]


# Output of a program as rows, whether the model or the user ran it.
#
# The rule: blanks within a row are kept, since columns are made of them. A line that is too long continues below its
# indent, with a whole word.

INDENT_CELLS = 4
"""Cells before rows that hang below the row of a call or command."""

_BEGIN, _NEXT = "  └ ", "    "
_TAB = 8


def printed_rows(text: str, room: int) -> list[str]:
    """Return the rows of a text without empty lines around it, in `room` cells, 4 or more; empty if it is blank."""
    clean = clean_for_terminal(text).strip("\n")
    return wrapped_under_indent(clean.expandtabs(_TAB), room) if clean.strip() else []


def hanging(rows: Sequence[str], room: int, theme: Theme, role: Role | None = None) -> list[str]:
    """Return rows that hang below the row of a call or command, `INDENT_CELLS` wider than `room`."""
    painted = [theme.paint(role, cut(row, room).rstrip(" ")) for row in rows]
    begin = theme.paint("dim", _BEGIN)
    return [f"{_NEXT if index else begin}{row}".rstrip(" ") for index, row in enumerate(painted)]


def output_of_users_command(text: str, width: int, theme: Theme, most: int) -> list[str]:
    """Return the last `most` rows of a command's output, to hang below it, and a note on the rows before."""
    room = max(width - INDENT_CELLS, 4)
    rows = printed_rows(text, room)
    if (hidden := len(rows) - most) > 0:
        rows = [f"… {hidden} lines before", *rows[hidden:]]
    return [cut(row, width) for row in hanging(rows, room, theme)]


class Scrollback(Protocol):
    """Takes finished lines."""

    @property
    def theme(self) -> Theme: ...

    @property
    def width(self) -> int: ...

    def show(self, *lines: str) -> None:
        """Put whole lines into the scrollback."""


class Canvas(Scrollback, Protocol):
    """Takes finished lines, and draws changing rows on request."""

    def refresh(self) -> None:
        """Redraw the live rows with the next frame."""

    async def drain(self) -> None:
        """Let keys be handled, and wait while the terminal is behind with the output."""


def say(scrollback: Scrollback, text: str, role: Role | None = None) -> None:
    """Show text of any origin, cleaned, wrapped, and in the colour of its role."""
    rows = plain_rows(text, max(scrollback.width, LEAST_WIDTH))
    scrollback.show(*(scrollback.theme.paint(role, row) for row in rows))


# A list to choose from, as rows with a label and a detail.
#
# Both are side by side if there is room. In a narrow terminal the labels have the rows to themselves, and the detail of
# the selected row is shown below the list.

_SELECTED = "❯ "
_OTHER = "  "
_GAP = "  "
_LEAST_DETAIL = 24
"""Fewest cells of a detail beside its label."""
_MOST_DETAIL_ROWS = 2


@dataclass(frozen=True, slots=True)
class ListRow:
    """Row of a list to choose from; both texts are cleaned and on one line."""

    label: str
    detail: str = ""


class ListRows:
    """Draws a list; it is made with all rows, so that columns stay in place while the list is scrolled."""

    def __init__(self, rows: Sequence[ListRow], width: int, theme: Theme) -> None:
        self._width = width
        self._theme = theme
        self._label_width = max((cell_width(row.label) for row in rows), default=0)
        detail_width = max((cell_width(row.detail) for row in rows), default=0)
        self._detail_room = width - len(_SELECTED) - self._label_width - len(_GAP)
        self._is_beside = self._detail_room >= min(detail_width, _LEAST_DETAIL)

    def row(self, row: ListRow, *, is_selected: bool) -> str:
        label = cut(row.label, self._width - len(_SELECTED))
        has_detail = self._is_beside and row.detail
        left = (
            f"{_SELECTED if is_selected else _OTHER}{pad_to_width(label, self._label_width) if has_detail else label}"
        )
        if is_selected:
            left = self._theme.paint("accent", left)
        return left + self._theme.paint("dim", _GAP + cut(row.detail, self._detail_room)) if has_detail else left

    def detail_rows(self, row: ListRow) -> list[str]:
        """Return the rows of the selected row's detail, if it is not shown beside the label."""
        if self._is_beside or not row.detail:
            return []
        indent = _OTHER + _GAP
        parts = wrap_text(row.detail, self._width - len(indent))
        if len(parts) > _MOST_DETAIL_ROWS:
            parts[_MOST_DETAIL_ROWS - 1 :] = [" ".join(parts[_MOST_DETAIL_ROWS - 1 :])]
        return [self._theme.paint("dim", indent + cut(part, self._width - len(indent))) for part in parts]
