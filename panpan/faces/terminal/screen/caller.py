"""Tells the user how it stands when he looks elsewhere: the window's title, and a call when he is needed."""

from collections.abc import Callable, Mapping
from pathlib import Path

from panpan.faces.terminal.screen.notify import LONG_TURN_S, Notifying, attention, title

_AT_WORK = "✳ "


class Caller:
    """Speaks to the terminal's window.

    Args:
        send: Sends the terminal what shows nothing in it.
        how: How the user wants to be called.
        env: Tells the terminal.
        folder: The workspace; its name is in the title.
    """

    def __init__(self, send: Callable[[bytes], None], how: Notifying, env: Mapping[str, str], folder: Path) -> None:
        self._send = send
        self._how = how
        self._env = env
        self._title = f"panpan: {folder.name or folder}"

    def idle(self) -> None:
        """Nothing runs."""
        self._send(title(self._title, self._env))

    def begun(self) -> None:
        """A turn runs."""
        self._send(title(f"{_AT_WORK}{self._title}", self._env))

    def turn_is_over(self, duration_s: float) -> None:
        """A turn is over; whoever waited long may have gone."""
        self.idle()
        if duration_s >= LONG_TURN_S:
            self._send(attention("the turn is over", self._how, self._env))

    def question_waits(self) -> None:
        """Somebody has to answer."""
        self._send(attention("a question waits", self._how, self._env))
