"""Lists as rows: one to choose from, and names with what belongs to each in two columns."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import cell_width, cut, padded, wrapped
from panpan.faces.terminal.rendering.text_rows import LEAST_WIDTH, plain_rows
from panpan.faces.terminal.screen.canvas import Scrollback
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

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
    """Whether it is there for completeness only."""


class ListRows:
    """Draws a list.

    Args:
        rows: All there are, so that columns stay where they are while the list is scrolled.
        width: Cells of a row.
        theme: How it looks.
    """

    def __init__(self, rows: Sequence[ListRow], width: int, theme: Theme) -> None:
        self._width = width
        self._theme = theme
        self._label_width = max((cell_width(row.label) for row in rows), default=0)
        detail_width = max((cell_width(row.detail) for row in rows), default=0)
        self._detail_room = width - len(_SELECTED) - self._label_width - len(_GAP)
        self._is_beside = self._detail_room >= min(detail_width, _LEAST_DETAIL)

    def row(self, row: ListRow, *, is_selected: bool) -> str:
        """Return one row."""
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


_LEAST_SECOND = 24
"""Cells that the second of two columns needs to stand beside the first."""


def say_pairs(terminal: Scrollback, pairs: Sequence[tuple[str, str]]) -> None:
    """Show names and what belongs to each in two columns, the names in colour."""
    terminal.show(*columns(pairs, terminal))


def columns(pairs: Sequence[tuple[str, str]], terminal: Scrollback) -> list[str]:
    """Return rows of two columns; where there is no room, the second stands below the first."""
    pairs = [(clean_line(name), text) for name, text in pairs]
    first = max((cell_width(name) for name, _ in pairs), default=0)
    width = max(terminal.width, LEAST_WIDTH)
    is_beside = width - first - 2 * len(_GAP) >= _LEAST_SECOND
    indent = first + 2 * len(_GAP) if is_beside else 2 * len(_GAP)
    rows = []
    for name, text in pairs:
        painted = terminal.theme.paint("accent", cut(name, width - len(_GAP)))
        second = plain_rows(text, width - indent)
        if is_beside:
            head, *second = second
            rows.append(f"{_GAP}{padded(painted, first)}{_GAP}{head}" if head else f"{_GAP}{painted}")
        else:
            rows.append(f"{_GAP}{painted}")
        rows += [f"{' ' * indent}{row}" for row in second]
    return rows
