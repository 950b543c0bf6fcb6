"""What of a reply's text the reader does not know yet.

A reply that failed half-way starts again from its beginning, and mostly says the same. What the new one has in common
with what was shown is not shown twice; where it says something else, it is shown from its beginning.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fresh:
    """What a delta adds."""

    text: str
    is_other: bool = False
    """Whether the text does not go on where the shown one stopped, and stands for itself."""


class FreshText:
    """Follows the text of one reply over all its tries."""

    def __init__(self) -> None:
        self._said = ""
        """What the try that is arriving has said."""
        self._known = ""
        """What a try that failed has said and the new one has not reached yet."""

    @property
    def may_go_on(self) -> bool:
        """Whether a try that failed was shown and the new one has not passed it."""
        return bool(self._known)

    def add(self, text: str) -> Fresh:
        """Return what of a delta is new."""
        self._said += text
        if not self._known:
            return Fresh(text)
        same = _common_length(self._known, text)
        if same < min(len(text), len(self._known)):
            self._known = ""
            return Fresh(self._said, is_other=True)
        self._known, text = self._known[same:], text[same:]
        return Fresh(text)

    def failed(self) -> None:
        """The try is void, and another one comes."""
        self._known, self._said = self._said + self._known, ""

    def is_whole(self) -> None:
        """The reply has come, or comes no more."""
        self._said = self._known = ""


def _common_length(one: str, other: str) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
