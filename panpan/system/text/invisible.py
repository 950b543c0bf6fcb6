"""Characters that show nothing, and marks that stand where no mark belongs.

The rule: what a person has to judge may hold none of them unseen; `spelled_out` asks here. Nothing is said here about
what is no character to print at all, such as controls: Python's `str.isprintable` knows those.
"""

import re
import unicodedata

IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What stands between the brackets of a regular expression for the property Default_Ignorable_Code_Point.

From DerivedCoreProperties.txt of the Unicode Character Database, version 14.0; Python's `unicodedata` has it not.
"""
_BLANK_LETTERS = "\u2800\U0001d159\U00013441\U00013442\U00016fe4"
"""Blank by design without being ignorable: in Braille, music, hieroglyphs and Khitan."""
_SHOWS_NOTHING = re.compile(f"[{IGNORABLE}{_BLANK_LETTERS}]")
_FIRST_MARK = "\u0300"
"""The first combining mark of Unicode; what stands before it needs no look."""
_MOST_MARKS = 4
"""On one letter; more grow over the rows above and below. No living language needs more."""


def shows_nothing(char: str) -> bool:
    """Return whether a printable character is invisible wherever it stands."""
    return _SHOWS_NOTHING.match(char) is not None


def misplaced_marks(text: str) -> set[int]:
    """Return the positions of combining marks that stand on no letter of their script, or on too many other marks."""
    marks = {char for char in set(text) if char >= _FIRST_MARK and _is_mark(char)}
    found: set[int] = set()
    if not marks:
        return found
    base, count = "", 0
    for position, char in enumerate(text):
        if char not in marks:
            base, count = char, 0
            continue
        count += 1
        if not base or count > _MOST_MARKS or not _may_carry(base, char):
            found.add(position)
    return found


def _is_mark(char: str) -> bool:
    is_joining_jamo = "\u1161" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"
    return unicodedata.category(char)[0] == "M" or is_joining_jamo


def _may_carry(base: str, mark: str) -> bool:
    """Return whether the mark is one for letters like `base`; the first word of a name tells the script."""
    if unicodedata.category(base)[0] not in "LN" or unicodedata.category(mark) == "Me" or shows_nothing(base):
        return False
    script = _first_word(mark)
    return script == "COMBINING" or script == _first_word(base)


def _first_word(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]
