"""Making text of models, tools and files harmless for the terminal.

The rule: such text passes `clean_for_terminal` before it is shown, and `escape_invisible` where a person has to judge
it, as in a permission prompt. Names in text of lines pass `printable`, so that none of them forges a line.

What a person has to judge may hold no invisible character unseen. Nothing is said here about what is no character to
print at all, such as controls: Python's `str.isprintable` knows those.
"""

import re
import unicodedata
from collections.abc import Sequence

from panpan.types.pattern import compile_late

IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Class of a regular expression, without its brackets, for the property Default_Ignorable_Code_Point.

From DerivedCoreProperties.txt of the Unicode Character Database, version 14.0; Python's `unicodedata` has it not.
"""
_BLANK_LETTERS = "\u2800\U0001d159\U00013441\U00013442\U00016fe4"
"""Blank by design without being ignorable: in Braille, music, hieroglyphs and Khitan."""
_SHOWS_NOTHING = compile_late(f"[{IGNORABLE}{_BLANK_LETTERS}]")
_FIRST_MARK = "\u0300"
"""The first combining mark of Unicode; characters before it need no look."""
_MOST_MARKS = 4
"""Most on one letter; more grow over the rows above and below. No living language needs more."""

_SEQUENCE = compile_late(
    r"""
    (?:\x1b\[|\x9b) [\x30-\x3f]* [\x20-\x2f]* [\x40-\x7e]              # CSI: colours, cursor, modes
  | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\x1b\x80-\x9f\n]* (?:\x07|\x1b\\|\x9c)  # OSC, DCS, SOS, PM, APC
  | \x1b [\x20-\x2f]+ [\x30-\x7e]                                      # character sets and the like
  | \x1b [\x30-\x5a\x5c-\x7e]                                          # other two-byte sequences
    """,
    re.VERBOSE,
)
_LINE_END = compile_late(r"\r\n?")
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_CONTROL = compile_late(f"[{_CONTROLS}]")
_EMOJI_JOINERS = "\u200c\u200d\ufe00-\ufe0f"
"""Joiners and variation selectors: emoji and some scripts are written with them."""
_HIDING = f"(?![{_EMOJI_JOINERS}])[{IGNORABLE}\u2028\u2029\ufff9-\ufffb]"
"""Bidi controls (UAX 9), separators, annotations, tags, ignorable characters: they reorder, break lines, hide text."""
_DECEPTIVE = compile_late(_HIDING)
_SUSPECT = compile_late(f"[{_CONTROLS}\ud800-\udfff]")
"""All that `without_controls` looks at; most text has none of it."""
_LONE_SURROGATE = compile_late("[\ud800-\udfff]")


def clean_for_terminal(text: str) -> str:
    """Return `text` without anything that drives a terminal.

    Escape sequences and control characters are dropped, except newline and tab; a carriage return becomes a newline;
    what reorders or hides text is shown as `<U+202E>`; what cannot be encoded becomes U+FFFD.
    """
    if text.isascii():
        return text if text.isprintable() else without_controls(text)
    return _DECEPTIVE.sub(lambda found: _number(found[0]), without_controls(text))


def clean_line(text: str) -> str:
    """Return `text` as `clean_for_terminal` does, on one line, with single blanks between its words."""
    return " ".join(clean_for_terminal(text).split())


def without_controls(text: str) -> str:
    """Return `text` without escape sequences and control characters, and otherwise as it is, also where it deceives.

    For what users paste or write themselves: marks for the direction of a script are their words, too. Newlines, tabs
    and surrogates are treated as in `clean_for_terminal`.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _SEQUENCE.sub("", text)
    text = _CONTROL.sub(lambda match: "\r" if match[0] == "\r" else "", text)
    text = _LINE_END.sub("\n", text)
    return _LONE_SURROGATE.sub("\ufffd", text)


def printable(text: str) -> str:
    """Return `text` on one line, with what cannot be seen or encoded as an escape: a line feed as backslash and n."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def escape_invisible(text: str) -> str:
    """Return `text` with every control or invisible character written as `<U+001B>`, newline and tab excepted.

    So are combining marks where no mark belongs. Nothing is dropped, so that a person who says yes has seen all of it.
    """
    hidden = {char for char in set(text) - set("\n\t") if not char.isprintable() or shows_nothing(char)}
    misplaced = misplaced_marks(text)
    if not hidden and not misplaced:
        return text
    return "".join(
        _number(char) if char in hidden or position in misplaced else char for position, char in enumerate(text)
    )


def _number(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def spoken_s(seconds: float) -> str:
    """Return a time in seconds as `0.4 s`, `12 s`, `3 min 20 s` or `2 h 5 min`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def shows_nothing(char: str) -> bool:
    """True if a printable character is always invisible."""
    return _SHOWS_NOTHING.match(char) is not None


def misplaced_marks(text: str) -> set[int]:
    """Return the positions of combining marks that are on no letter of their script, or on too many other marks."""
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
    """True if the mark is one for letters like `base`; the first word of a name tells the script."""
    if unicodedata.category(base)[0] not in "LN" or unicodedata.category(mark) == "Me" or shows_nothing(base):
        return False
    script = _first_word(mark)
    return script == "COMBINING" or script == _first_word(base)


def _first_word(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def size_text(count: int) -> str:
    """Return a number of bytes in words, such as "1.5 GB"; a kB is a thousand bytes."""
    amount, unit = float(count), 0
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{amount:.3g} {_UNITS[unit]}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as "1 seed" and "3 seeds"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(texts: Sequence[str], most: int) -> str:
    """Return the first texts with commas between them, and the number of others, such as "a, b and 3 more"."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more:,} more" if more > 0 else "")
