"""A hint that is shown for a moment in place of the status line."""

from collections.abc import Callable

SHOWN_S = 3.0


class PassingHint:
    """Holds one hint.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._text = ""
        self._until_s = float("-inf")
        self._was_shown = False

    @property
    def text(self) -> str:
        """What is shown; empty once its time is over."""
        return self._text if self._clock() < self._until_s else ""

    def is_moving(self) -> bool:
        """Return whether it is on the screen, or was when this was last asked and has to be taken away."""
        was_shown, self._was_shown = self._was_shown, bool(self.text)
        return was_shown or self._was_shown

    def show(self, text: str) -> None:
        """Show a hint from now on."""
        self._text, self._until_s = text, self._clock() + SHOWN_S
