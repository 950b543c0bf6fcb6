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

    @property
    def text(self) -> str:
        """What is shown; empty once its time is over."""
        return self._text if self._clock() < self._until_s else ""

    def show(self, text: str) -> None:
        """Show a hint from now on."""
        self._text, self._until_s = text, self._clock() + SHOWN_S
