"""Dialogs that wait for the user: one is shown at a time, and none is answered by a key that was meant for another.

A key counts for a dialog only when the dialog has been on the screen for a moment in which nothing was typed. Until
then keys go where they went before, so that what somebody is typing is kept, and answers nothing.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from panpan.ui.repl.dialogs.dialog import Dialog

QUIET_S = 0.4
"""How long nothing may be typed before a dialog takes the keys; a fast typist strikes every 0.15 s."""

T = TypeVar("T")


class _Open:
    """A dialog and whoever waits for it."""

    def __init__(self, dialog: Dialog[Any]) -> None:
        self.dialog = dialog
        self.answered = anyio.Event()


class DialogQueue:
    """Asks one thing after the other.

    Args:
        refresh: Draws the screen again.
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, refresh: Callable[[], None], clock: Callable[[], float]) -> None:
        self._refresh = refresh
        self._clock = clock
        self._open: deque[_Open] = deque()
        self._quiet_since: float | None = None
        """Since when the first dialog is on the screen and nothing was typed; None: it is not on the screen yet."""

    async def ask(self, dialog: Dialog[T]) -> T:
        """Show a dialog when its turn comes, and return the answer; a cancel takes it away."""
        one = _Open(dialog)
        self._open.append(one)
        self._refresh()
        try:
            await one.answered.wait()
        finally:
            if one is self.first:
                self._quiet_since = None
            self._open.remove(one)
            self._refresh()
        answer = dialog.answer
        assert answer is not None, "a dialog is over when it is answered"
        return answer

    @property
    def first(self) -> _Open | None:
        """The one that is shown."""
        return self._open[0] if self._open else None

    @property
    def current(self) -> Dialog[Any] | None:
        """The dialog that is shown."""
        return self.first.dialog if self.first is not None else None

    @property
    def waiting(self) -> int:
        """How many come after it."""
        return max(len(self._open) - 1, 0)

    @property
    def takes_keys(self) -> bool:
        """Whether a key that comes now is for the dialog."""
        return (
            self._quiet_since is not None
            and self.first is not None
            and not self.first.answered.is_set()
            and self._clock() - self._quiet_since >= QUIET_S
        )

    def was_drawn(self) -> None:
        """The screen was drawn, with the dialog on it."""
        if self.first is not None and self._quiet_since is None:
            self._quiet_since = self._clock()

    def typed_elsewhere(self) -> None:
        """A key went past the dialog: it has to wait again."""
        if self._quiet_since is not None:
            self._quiet_since = self._clock()

    def press(self, key: str) -> None:
        """Give the dialog a key."""
        one = self.first
        if one is None or one.answered.is_set():
            return
        one.dialog.press(key)
        if one.dialog.answer is not None:
            one.answered.set()
        self._refresh()

    def paste(self, text: str) -> None:
        """Give the dialog pasted text."""
        if self.current is not None:
            self.current.paste(text)
            self._refresh()
