"""Windows below the scrollback: their order and the room of each."""

from collections.abc import Callable, Sequence

from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition, has_completions, is_done
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    AnyContainer,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import Output
from prompt_toolkit.utils import get_cwidth
from wcwidth import strip_sequences

from panpan.faces.terminal.input.input_box import InputBox
from panpan.types.dataclass import dataclass

Caret = tuple[int, int]


class ViewWindow:
    """Window of rows with SGR sequences.

    `rows` is called once for each drawing with the width. `size` returns the cells of a row and the number of rows that
    fit, and `caret` the row and cell of the caret, or None if it is elsewhere.
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
        """Number of first rows for which there is no room."""
        control = FormattedTextControl(self._text, focusable=True, get_cursor_position=self._cursor)
        # it may shrink: if windows need more rows than there are, only "Window too small" is shown
        self.window = Window(control, dont_extend_height=True, wrap_lines=False, height=self._height)
        self.container = ConditionalContainer(self.window, filter=Condition(self._take_rows))

    def _take_rows(self) -> bool:  # called first, once for each drawing
        width, room = self._size()
        rows = self._all_rows(width)
        self._hidden = max(len(rows) - room, 0)
        self._rows = rows[self._hidden :]
        return bool(self._rows)

    @property
    def has_rows(self) -> bool:
        """True if it had rows at the last drawing."""
        return bool(self._rows)

    @property
    def is_whole(self) -> bool:
        return not self._hidden

    def _height(self) -> Dimension:
        return Dimension(min=0, preferred=len(self._rows), max=len(self._rows))

    def _text(self) -> AnyFormattedText:
        return ANSI("\n".join(f"{row} " for row in self._rows))  # the caret may be after the last character

    def _cursor(self) -> Point | None:
        caret = self._caret()
        if caret is None or not 0 <= caret[0] - self._hidden < len(self._rows):
            return None
        row, cell = caret[0] - self._hidden, caret[1]
        return Point(x=_characters(strip_sequences(self._rows[row]), cell), y=row)


def _characters(text: str, cells: int) -> int:
    """Return the number of characters in the first `cells` cells of a row."""
    for number, character in enumerate(text):
        if cells <= 0:
            return number
        cells -= get_cwidth(character)
    return len(text)


def _nothing(width: int) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class DialogView:
    """View of the current dialog."""

    rows: Callable[[int], Sequence[str]] = _nothing
    caret: Callable[[], Caret | None] = lambda: None
    """Returns row and cell of the caret; None if it is in the input."""
    was_drawn: Callable[[bool], None] = lambda is_whole: None
    """Called after each drawing; the argument is True if the whole dialog is on the screen."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of the screen below the scrollback, besides the input, and key bindings; each session has its own.

    Each view gets the width and returns rows. They are shown in this order, with the input before the status.
    """

    keys: KeyBindings
    live: Callable[[int], Sequence[str]] = _nothing
    dialog: DialogView = DialogView()
    queue: Callable[[int], Sequence[str]] = _nothing
    status: Callable[[int], Sequence[str]] = _nothing
    is_moving: Callable[[], bool] = lambda: False
    """Returns True if something changes over time, such as a spinner."""
    key_pressed: Callable[[], None] = lambda: None
    """Called before a key is handled."""


_ROWS_FOR_INPUT = 2
"""Rows for typing and for the status line."""
_ROWS_FOR_STATUS = 12
"""Fewest rows of a terminal in which the status line stays beside a dialog."""


class Windows:
    """Layout of the windows below the scrollback."""

    def __init__(self, output: Output, box: InputBox, contents: Contents) -> None:
        self._output = output
        self._box = box
        self._contents = contents
        self._dialog = self._window(lambda contents: contents.dialog.rows, lambda: self.room_for_dialog, self._caret)
        self._menu = ViewWindow(box.menu.rows, lambda: (self._output.get_size().columns, self.room))
        box.be_one_row_while(lambda: self._dialog.has_rows)
        self.layout = Layout(self._container(), focused_element=box.window)

    @property
    def contents(self) -> Contents:
        return self._contents

    def use(self, contents: Contents) -> None:
        """Show other contents around the input from now on."""
        self._contents = contents

    @property
    def room(self) -> int:
        """Rows above the input."""
        return max(self._output.get_size().rows - _ROWS_FOR_INPUT, 1)

    @property
    def room_for_dialog(self) -> int:
        """Rows above the input while a dialog is open."""
        has_status = self._output.get_size().rows >= _ROWS_FOR_STATUS
        return max(self._output.get_size().rows - (_ROWS_FOR_INPUT if has_status else 1) - self.layout.is_searching, 1)

    def note_drawn(self) -> None:
        """Tell the dialog and the list of completions if they were seen whole; otherwise keys do not answer them."""
        self.contents.dialog.was_drawn(self._is_whole(self._dialog))
        self._box.menu.was_drawn(is_whole=self._is_whole(self._menu))

    def forget_drawn(self) -> None:
        """Tell both that their rows may not be on the screen any more."""
        self.contents.dialog.was_drawn(False)
        self._box.menu.was_drawn(is_whole=False)

    def _is_whole(self, view: ViewWindow) -> bool:
        info = view.window.render_info
        if info is None or view.window not in self.layout.visible_windows:
            return False
        return view.is_whole and info.window_height >= info.content_height

    def focus(self) -> bool:
        """Put the caret where the user types: in the dialog, or in the input and its search. True if it has moved."""
        window = self._box.window if self._caret() is None else self._dialog.window
        if self.layout.current_window is window or self.layout.is_searching:
            return False
        self.layout.focus(window)
        return True

    def _container(self) -> AnyContainer:
        status = self._window(lambda contents: contents.status, self._room)
        has_dialog = Condition(lambda: self._dialog.has_rows)
        has_room = Condition(lambda: self._output.get_size().rows >= _ROWS_FOR_STATUS)
        rows = [
            self._window(lambda contents: contents.live, self._room).container,
            self._dialog.container,
            self._window(lambda contents: contents.queue, self._room).container,
            self._box.container,
            ConditionalContainer(self._menu.container, filter=~has_dialog),
            ConditionalContainer(status.container, filter=~has_completions & ~has_dialog | has_dialog & has_room),
        ]
        return ConditionalContainer(HSplit(rows), filter=~is_done)

    def _window(
        self,
        view: Callable[[Contents], Callable[[int], Sequence[str]]],
        room: Callable[[], int],
        caret: Callable[[], Caret | None] = lambda: None,
    ) -> ViewWindow:
        def rows(width: int) -> Sequence[str]:
            return view(self._contents)(width)

        return ViewWindow(rows, lambda: (self._output.get_size().columns, room()), caret)

    def _room(self) -> int:
        return self.room

    def _caret(self) -> Caret | None:
        return self._contents.dialog.caret()
