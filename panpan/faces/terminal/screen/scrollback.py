"""What is printed for good: whole lines, each printed once, above the windows."""

from typing import Any

from prompt_toolkit.application import Application

from panpan.faces.terminal.screen.steady_output import SteadyOutput


class Scrollback:
    """Keeps lines until they are printed.

    Args:
        output: The terminal.
        app: Has the windows, while it runs.
    """

    def __init__(self, output: SteadyOutput, app: Application[Any]) -> None:
        self._output = output
        self._app = app
        self._waiting: list[str] = []

    @property
    def count(self) -> int:
        """How many lines wait."""
        return len(self._waiting)

    def add(self, *lines: str) -> None:
        """Let lines wait."""
        self._waiting += lines

    def print(self, most: int | None = None) -> None:
        """Print the lines that came first, in one write together with the windows below them, which blocks.

        Args:
            most: So many lines; None: all.
        """
        if not self._waiting or most == 0:
            return
        lines = self._waiting[:most]
        del self._waiting[:most]
        text = "".join(f"{line}\r\n" for line in lines)
        if not self._app.is_running or self._app.is_done:
            self._output.write_raw(text)
            self._output.flush()
            return
        with self._output.held():
            self._app.renderer.erase()
            self._output.write_raw(text)
            self._app._redraw()  # `invalidate` would draw later, in a write of its own
        self._output.flush()
