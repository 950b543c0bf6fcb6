"""The width of a line in terminal cells.

Widths are never measured too small: if terminals differ, as with joined emoji, the widest counts.
"""

from unicodedata import category

from wcwidth import strip_sequences, wcswidth, wcwidth

from panpan.types.pattern import compile_late

_UNDISPUTED = compile_late(
    "[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u205e\u2190-\u22ff\u2500-\u259f"
    "\u3040-\u3096\u30a0-\u9fff\uac00-\ud7a3]*"
)
"""Letters, lines and arrows whose width is the same in all terminals. No two of them are joined."""
_PICTURE_MARK = "\ufe0f"
"""Variation selector for the emoji instead of the letter; terminals that support it make it two cells wide."""


def cell_width(text: str) -> int:
    """Return the most cells that one line may take."""
    if "\x1b" in text:
        text = strip_sequences(text)
    if text.isascii():
        return len(text)
    if _UNDISPUTED.fullmatch(text):
        return wcswidth(text)
    # some terminals widen a character before a mark that has no width itself
    return sum(max(0, wcwidth(char)) + _may_widen(char) for char in text)


def _may_widen(char: str) -> bool:
    return char == _PICTURE_MARK or (category(char) == "Mc" and wcwidth(char) <= 0)
