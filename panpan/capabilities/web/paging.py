"""A long text, piece by piece.

The rule: the pieces that follow one another by `next_offset` are together the whole text, each character once.
"""

from panpan.types.dataclass import dataclass

PAGE_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text, from `start` to before `end`, in characters."""

    text: str
    start: int
    end: int
    total: int

    @property
    def next_offset(self) -> int | None:
        """Where the next one begins; None where this is the last."""
        return self.end if self.end < self.total else None


def piece_at(text: str, offset: int, most: int = PAGE_CHARS) -> Piece:
    """Return what stands from `offset` on; it ends between two lines, or words, where that costs less than a tenth.

    Args:
        text: All of it.
        offset: From 0; behind the end nothing stands.
        most: Characters of it; at least 1.
    """
    start, end = min(offset, len(text)), min(offset + most, len(text))
    if end < len(text):
        least = end - most // 10
        end = next((found + 1 for mark in ("\n", " ") if (found := text.rfind(mark, least, end)) >= 0), end)
    return Piece(text[start:end], start, end, len(text))
