"""What of a reply's text the reader does not know yet.

A reply that failed half-way starts again from its beginning, and mostly says the same. What the new one has in common
with what was shown is not shown twice; where it says something else, it is shown from its beginning.
"""

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Fresh:
    """What a delta adds."""

    text: str
    is_other: bool = False
    """Whether the text does not go on where the shown one stopped, and stands for itself."""


class FreshText:
    """Follows the text of one reply over all its tries."""

    def __init__(self) -> None:
        self._said: list[str] = []
        """What the try that is arriving has said."""
        self._known = ""
        """What a try that failed has said and the new one had not when it began."""
        self._reached = 0
        """How many characters of that the new one has said by now."""

    @property
    def may_go_on(self) -> bool:
        """Whether a try that failed was shown and the new one has not passed it."""
        return self._reached < len(self._known)

    def add(self, text: str) -> Fresh:
        """Return what of a delta is new."""
        self._said.append(text)
        if not self.may_go_on:
            return Fresh(text)
        known = self._known[self._reached : self._reached + len(text)]
        if text[: len(known)] != known:
            self._known, self._reached = "", 0
            return Fresh("".join(self._said), is_other=True)
        self._reached += len(known)
        return Fresh(text[len(known) :])

    def failed(self) -> None:
        """The try is void, and another one comes."""
        self._known, self._reached = "".join(self._said) + self._known[self._reached :], 0
        self._said.clear()

    def is_whole(self) -> None:
        """The reply has come, or comes no more."""
        self._said.clear()
        self._known, self._reached = "", 0
