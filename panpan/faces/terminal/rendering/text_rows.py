"""Text as rows: plain, as Markdown, as a program printed it, or as a list to choose from."""

from collections.abc import Callable, Sequence
from typing import Protocol

from panpan.faces.terminal.rendering.cells import broken, cell_width, cut, padded, wrapped, wrapped_under_indent
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass
from panpan.types.role import Role

LEAST_WIDTH = 20
"""Cells for which a terminal is laid out; one that is narrower breaks the rows itself."""
_TAB_CELLS = 4


def plain_rows(text: str, width: int) -> list[str]:
    """Return harmless rows of at most `width` cells, 4 or more; words stay whole where they fit, and indents stay."""
    return wrapped_under_indent(clean_for_terminal(text).expandtabs(_TAB_CELLS), width)


def markdown_rows(text: str, width: int, theme: Theme) -> list[str]:
    """Return the rows of a text of the model, of which nothing drives the terminal."""
    from panpan.faces.terminal.rendering.markdown import MarkdownStream  # not needed to take the first key

    stream = MarkdownStream(width, theme)
    return [*stream.feed(text), *stream.finish()]


# What a program printed, as rows, whoever ran it: the model with a tool, or the user himself.
#
# The rule: every blank is kept, since columns are made of them, and a line that is too long goes on in the next row.

INDENT_CELLS = 4
"""Before what hangs below the row of what was run."""

_BEGIN, _NEXT = "  └ ", "    "
_TAB = 8


def printed_rows(text: str, room: int, *, fill: Callable[[str, int], list[str]] = broken) -> list[str]:
    """Return the rows of a text, without empty lines around it, none where it is blank; `room` is 2 cells or more."""
    clean = clean_for_terminal(text).strip("\n")
    lines = [line.expandtabs(_TAB).rstrip(" ") for line in clean.split("\n")] if clean.strip() else []
    return [row for line in lines for row in fill(line, room)]


def hanging(rows: Sequence[str], room: int, theme: Theme, role: Role | None = None) -> list[str]:
    """Return rows as they hang below the row of what was run, `INDENT_CELLS` wider than `room`."""
    painted = [theme.paint(role, cut(row, room).rstrip(" ")) for row in rows]
    begin = theme.paint("dim", _BEGIN)
    return [f"{_NEXT if index else begin}{row}".rstrip(" ") for index, row in enumerate(painted)]


def output_of_users_command(text: str, width: int, theme: Theme, most: int) -> list[str]:
    """Return the last `most` rows of a command's output, to hang below it, and how many came before."""
    room = max(width - INDENT_CELLS, 2)
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
    """Takes finished lines, and draws what changes when it is told to."""

    def refresh(self) -> None:
        """Draw what is live again with the next frame."""

    async def caught_up(self) -> None:
        """Let keys be taken, and wait while more is shown than the terminal takes."""


def say(scrollback: Scrollback, text: str, role: Role | None = None) -> None:
    """Show text of any origin: harmless, wrapped, and in the colour of its role."""
    rows = plain_rows(text, max(scrollback.width, LEAST_WIDTH))
    scrollback.show(*(scrollback.theme.paint(role, row) for row in rows))


# A list to choose from, as rows: what each one is called, and what it is.
#
# Both stand side by side where there is room. In a narrow terminal the names have the rows for themselves, and what
# the selected one is stands below the list.

_SELECTED = "❯ "
_OTHER = "  "
_GAP = "  "
_LEAST_DETAIL = 24
"""Cells that what a row is about needs to stand beside its name."""
_MOST_DETAIL_ROWS = 2


@dataclass(frozen=True, slots=True)
class ListRow:
    """One of a list to choose from; both texts are harmless and on one line."""

    label: str
    detail: str = ""
    is_faint: bool = False
    """True if it is there for completeness only."""


class ListRows:
    """Draws a list; all rows are told at first, so that columns stay where they are while it is scrolled."""

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
        left = f"{_SELECTED if is_selected else _OTHER}{padded(label, self._label_width) if has_detail else label}"
        if is_selected:
            left = self._theme.paint("accent", left)
        elif row.is_faint:
            left = self._theme.paint("dim", left)
        return left + self._theme.paint("dim", _GAP + cut(row.detail, self._detail_room)) if has_detail else left

    def detail_rows(self, row: ListRow) -> list[str]:
        """Return what the selected one is, where that does not stand beside it."""
        if self._is_beside or not row.detail:
            return []
        indent = _OTHER + _GAP
        parts = wrapped(row.detail, self._width - len(indent))
        if len(parts) > _MOST_DETAIL_ROWS:
            parts[_MOST_DETAIL_ROWS - 1 :] = [" ".join(parts[_MOST_DETAIL_ROWS - 1 :])]
        return [self._theme.paint("dim", indent + cut(part, self._width - len(indent))) for part in parts]
