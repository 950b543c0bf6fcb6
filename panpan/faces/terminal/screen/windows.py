"""The windows below the scrollback: which there are, in which order, and how much room each has."""

from collections.abc import Callable, Sequence

from prompt_toolkit.filters import Condition, has_completions, is_done
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, HSplit, Layout

from panpan.faces.terminal.input.input_box import InputBox
from panpan.faces.terminal.screen.contents import Contents
from panpan.faces.terminal.screen.steady_output import SteadyOutput
from panpan.faces.terminal.screen.view_window import ViewWindow

_ROWS_FOR_INPUT = 2
"""A row to type in, and the status line."""
_ROWS_FOR_STATUS = 12
"""In a terminal of fewer rows, a dialog takes the place of the status line."""


class Windows:
    """What is drawn, and drawn again.

    Args:
        output: The terminal.
        box: The input.
        contents: What stands around it at first.
    """

    def __init__(self, output: SteadyOutput, box: InputBox, contents: Contents) -> None:
        self._output = output
        self._box = box
        self.contents = contents
        """What stands around the input; may be changed at any time."""
        self._dialog = self._window(lambda contents: contents.dialog, lambda: self.room_for_dialog, self._caret)
        self._menu = ViewWindow(box.menu.rows, lambda: (self._output.size.columns, self.room))
        box.be_one_row_while(lambda: self._dialog.has_rows)
        self.layout = Layout(self._container(), focused_element=box.window)

    @property
    def room(self) -> int:
        """Rows there are above the input."""
        return max(self._output.size.rows - _ROWS_FOR_INPUT, 1)

    @property
    def room_for_dialog(self) -> int:
        """The same where a dialog is open."""
        has_status = self._output.size.rows >= _ROWS_FOR_STATUS
        return max(self._output.size.rows - (_ROWS_FOR_INPUT if has_status else 1) - self.layout.is_searching, 1)

    def note_drawn(self) -> None:
        """Tell the dialog and the list of completions whether all of them was seen; else nothing there is answered."""
        self.contents.was_drawn(self._is_whole(self._dialog))
        self._box.menu.was_drawn(is_whole=self._is_whole(self._menu))

    def forget_drawn(self) -> None:
        """Tell both that what was seen may not be on the screen any more."""
        self.contents.was_drawn(False)
        self._box.menu.was_drawn(is_whole=False)

    def _is_whole(self, view: ViewWindow) -> bool:
        info = view.window.render_info
        if info is None or view.window not in self.layout.visible_windows:
            return False
        return view.is_whole and info.window_height >= info.content_height

    def focus(self) -> None:
        """Let the caret be where somebody types: in the dialog, or in the input and its search."""
        window = self._box.window if self._caret() is None else self._dialog.window
        if self.layout.current_window is not window and not self.layout.is_searching:
            self.layout.focus(window)

    def _container(self) -> AnyContainer:
        status = self._window(lambda contents: contents.status, self._room)
        has_dialog = Condition(lambda: self._dialog.has_rows)
        has_room = Condition(lambda: self._output.size.rows >= _ROWS_FOR_STATUS)
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
        caret: Callable[[], tuple[int, int] | None] = lambda: None,
    ) -> ViewWindow:
        def rows(width: int) -> Sequence[str]:
            return view(self.contents)(width)

        return ViewWindow(rows, lambda: (self._output.size.columns, room()), caret)

    def _room(self) -> int:
        return self.room

    def _caret(self) -> tuple[int, int] | None:
        return self.contents.caret()
