"""A window that is as high as what it shows, and shows the last rows where there is no room for all."""

from collections.abc import Callable, Sequence

from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.layout import ConditionalContainer, Dimension, FormattedTextControl, Window
from prompt_toolkit.utils import get_cwidth

from panpan.faces.terminal.rendering.cells import without_sequences

Caret = tuple[int, int]


class ViewWindow:
    """Shows rows with SGR sequences.

    Args:
        rows: Given the width, returns the rows; asked once for each drawing.
        size: Returns the cells of a row, and how many rows there is room for.
        caret: Returns row and cell of the caret; None where it is elsewhere.
    """

    def __init__(
        self,
        rows: Callable[[int], Sequence[str]],
        size: Callable[[], tuple[int, int]],
        caret: Callable[[], Caret | None] = lambda: None,
    ) -> None:
        self._all_rows = rows
        self._size = size
        self._caret = caret
        self._rows: Sequence[str] = ()
        self._hidden = 0
        """Rows at the beginning for which there is no room."""
        control = FormattedTextControl(self._text, focusable=True, get_cursor_position=self._cursor)
        # it may shrink: rows that ask for more than there are would leave nothing but "Window too small"
        self.window = Window(control, dont_extend_height=True, wrap_lines=False, height=self._height)
        self.container = ConditionalContainer(self.window, filter=Condition(self._take_rows))

    def _take_rows(self) -> bool:  # asked first, once for each drawing
        width, room = self._size()
        rows = self._all_rows(width)
        self._hidden = max(len(rows) - room, 0)
        self._rows = rows[self._hidden :]
        return bool(self._rows)

    @property
    def has_rows(self) -> bool:
        """Whether there was anything to show when it was drawn last."""
        return bool(self._rows)

    @property
    def is_whole(self) -> bool:
        """Whether all rows have room."""
        return not self._hidden

    def _height(self) -> Dimension:
        return Dimension(min=0, preferred=len(self._rows), max=len(self._rows))

    def _text(self) -> AnyFormattedText:
        return ANSI("\n".join(f"{row} " for row in self._rows))  # the caret may stand behind the last character

    def _cursor(self) -> Point | None:
        caret = self._caret()
        if caret is None or not 0 <= caret[0] - self._hidden < len(self._rows):
            return None
        row, cell = caret[0] - self._hidden, caret[1]
        return Point(x=_characters(without_sequences(self._rows[row]), cell), y=row)


def _characters(text: str, cells: int) -> int:
    """Return how many characters of a row stand in its first `cells` cells."""
    for number, character in enumerate(text):
        if cells <= 0:
            return number
        cells -= get_cwidth(character)
    return len(text)
