"""What was drawn last below the scrollback: whether the user sees it, and how long its rows are."""

from typing import Any

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size

from panpan.faces.terminal.screen.reflow import Drawn
from panpan.faces.terminal.screen.steady_output import SteadyOutput
from panpan.faces.terminal.screen.windows import Windows


class LastDrawing:
    """Follows the drawings of an application.

    Args:
        app: Draws.
        output: Where to.
        windows: What is drawn; they are told what of it was seen.
    """

    def __init__(self, app: Application[Any], output: SteadyOutput, windows: Windows) -> None:
        self.has_been = anyio.Event()
        """Set once anything was drawn."""
        self._app = app
        self._output = output
        self._windows = windows
        self._drawn = Drawn(0)
        self._size: Size | None = None
        """The window's when the last drawing began; it may change meanwhile."""
        app.before_render += lambda _: self._begin()
        app.after_render += lambda _: self._note()
        app.key_processor.before_key_press += lambda _: self._note_key()

    def rows_more(self) -> int:
        """Return how many rows came between since the last drawing; once for each change of the width."""
        drawn, self._drawn = self._drawn, Drawn(0)
        return drawn.rows_more(self._output.size.columns)

    def _begin(self) -> None:
        self._size = self._output.size
        self._windows.focus()

    def _note(self) -> None:
        """Remember how long the rows are that stand on the screen, and tell that they were seen."""
        self.has_been.set()
        self._windows.note_drawn()
        screen = self._app.renderer.last_rendered_screen
        if screen is None:
            return
        caret = screen.get_cursor_position(self._app.layout.current_window)
        rows = (screen.data_buffer[row].items() for row in range(caret.y))
        cells = [max((cell for cell, char in row if char.char.strip()), default=-1) + 1 for row in rows]
        self._drawn = Drawn(self._output.size.columns, cells, caret.x)

    def _note_key(self) -> None:
        """Tell that a key came; what was seen in a window of another size may not be there any more."""
        if self._output.size != self._size:
            self._windows.forget_drawn()
        self._windows.contents.key_pressed()
        self._windows.focus()  # the key before may have answered the dialog, and nothing was drawn since
