r"""One view of a text in which every line break is "\n", and the way back to the breaks that are really there.

A model writes "\n" whatever the file has. A lone "\r" is a line break only in a file that has no "\n" at all (as old
Macs wrote them); elsewhere it is a character like any other.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence


class LineBreakView:
    """A text as the model sees it.

    Args:
        source: The text with the line breaks of the file.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.is_mac = "\r" in source and "\n" not in source
        self.text = source.replace("\r", "\n") if self.is_mac else source.replace("\r\n", "\n")
        self._two_wide: Sequence[int] = () if self.is_mac or "\r\n" not in source else _positions(source)

    def source_index(self, index: int) -> int:
        """Return where the character at `index` of `text` begins in `source`."""
        return index + bisect_left(self._two_wide, index)

    def breaks(self, start: int, end: int) -> list[str]:
        """Return the line breaks of the file between `start` and `end` of `text`, in order."""
        return re.findall(r"\r\n|\n|\r" if self.is_mac else r"\r\n|\n", self._source_slice(start, end))

    def break_near(self, index: int) -> str:
        r"""Return the line break of the line at `index` of `text`: the next one, else the one before, else "\n"."""
        position = self.text.find("\n", index)
        if position < 0:
            position = self.text.rfind("\n", 0, index)
        return self._source_slice(position, position + 1) if position >= 0 else "\n"

    def fitted(self, addition: str, start: int, end: int) -> str:
        """Return `addition` with the line breaks that belong between `start` and `end` of `text`.

        Each takes the place of one that is there, in order; what is left over goes on like the last of them.
        """
        if "\n" not in addition:
            return addition
        old = self.breaks(start, end) or [self.break_near(end)]
        first, *lines = addition.split("\n")
        return first + "".join(old[min(number, len(old) - 1)] + line for number, line in enumerate(lines))

    def _source_slice(self, start: int, end: int) -> str:
        return self.source[self.source_index(start) : self.source_index(end)]


def _positions(source: str) -> list[int]:
    """Return where the CRLF pairs of `source` lie in the text that has one character for each."""
    return [match.start() - number for number, match in enumerate(re.finditer("\r\n", source))]
