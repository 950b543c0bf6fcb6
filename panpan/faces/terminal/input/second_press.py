"""Keys that mean more when they are pressed twice in a row."""

from collections.abc import Callable

AGAIN_S = 3.0
"""How soon the second one has to follow; as long as the hint is shown that tells of it."""


class SecondPress:
    """Tells the second of two presses from the first: nothing was pressed in between.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._presses = 0
        """How many keys were pressed, this one included."""
        self._first: tuple[str, int, float] | None = None
        """Which key came first, at which press and when."""

    def key_pressed(self) -> None:
        """Count a key, whichever it is; called before it is handled."""
        self._presses += 1

    def is_second(self, key: str) -> bool:
        """Return whether `key`, which was just pressed, was the last one, too; if not, this is its first time."""
        before, self._first = self._first, None
        if before is not None:
            name, number, when_s = before
            if name == key and number == self._presses - 1 and self._clock() - when_s < AGAIN_S:
                return True
        self._first = key, self._presses, self._clock()
        return False
