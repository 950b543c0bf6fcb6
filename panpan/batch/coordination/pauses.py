"""Pauses between tries, which grow while nothing helps."""


class GrowingPause:
    """A pause that doubles each time that it is taken.

    Args:
        first_s: The first one, in seconds.
        longest_s: Limit on all.
    """

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = self._next_s = first_s
        self._longest_s = longest_s

    def take(self) -> float:
        """Return the seconds to wait now."""
        pause_s = self._next_s
        self._next_s = min(pause_s * 2, self._longest_s)
        return pause_s

    def reset(self) -> None:
        """Begin with the first pause again, since a try went well."""
        self._next_s = self._first_s
