"""A list to choose from, as rows."""

from collections.abc import Sequence

from panpan.faces.terminal.rendering.cells import cell_width, cut, padded, wrapped
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass

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
