"""How long somebody could look at something: since it is on the screen, and nothing was typed."""

from collections.abc import Callable

QUIET_S = 0.4
"""How long nothing may be typed before a key counts for what is on the screen; a fast typist strikes every 0.15 s."""


class Quiet:
    """The time since something is on the screen and nothing was typed.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None
        """None: it is not on the screen."""

    def begin(self) -> None:
        """It is on the screen; it may have been before."""
        if self._since is None:
            self._since = self._clock()

    def restart(self) -> None:
        """Something was typed."""
        if self._since is not None:
            self._since = self._clock()

    def end(self) -> None:
        """It is not on the screen, or not any more."""
        self._since = None

    def is_short_of(self, seconds: float) -> bool:
        """Return whether it is on the screen, and not that long yet without a key."""
        return self._since is not None and not self.has_lasted(seconds)

    def has_lasted(self, seconds: float) -> bool:
        """Return whether it has been on the screen that long without a key."""
        return self._since is not None and self._clock() - self._since >= seconds
