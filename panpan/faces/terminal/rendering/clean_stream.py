"""Text of others made harmless while it arrives in pieces: a sequence may be split over several of them.

Joined, what comes out is what `clean_for_terminal` makes of the whole, wherever it was split.
"""

import re

from panpan.system.text.terminal_text import clean_for_terminal

_BEGUN = re.compile(
    r"""
    (?: (?:\x1b\[|\x9b) [\x30-\x3f]* [\x20-\x2f]*                         # CSI
      | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\x1b\x80-\x9f\n]* \x1b?  # OSC and the like
      | \x1b [\x20-\x2f]*
    ) \Z
    """,
    re.VERBOSE,
)
"""A sequence that the next piece may end."""
_GOES_ON = (
    (re.compile(r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x1b]*\Z"), re.compile(r"[^\x07\x1b\x80-\x9f\n]*")),
    (re.compile(r"(?:\x1b\[|\x9b)[\x30-\x3f]*\Z"), re.compile(r"[\x30-\x3f]*")),
    (re.compile(r"[^\x20-\x2f]*[\x20-\x2f]+\Z"), re.compile(r"[\x20-\x2f]*")),
)
"""The beginning of a sequence, and pieces that make it longer and do not end it, for good or bad."""


class CleanStream:
    """Makes pieces harmless and holds back the beginning of a sequence at the end of one."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._goes_on: re.Pattern[str] | None = None
        """Pieces that are held back, too, unread: so a sequence that never ends is not searched again and again."""
        self._was_return = False
        """True if a carriage return came last and was passed on as a newline: a newline after it is the same one."""

    def feed(self, text: str) -> str:
        """Return what of the text so far is sure and was not returned yet."""
        if not self._held and not self._was_return and text.isprintable():
            return clean_for_terminal(text)
        self._held.append(text)
        if self._goes_on and self._goes_on.fullmatch(text):
            return ""
        text = "".join(self._held)
        begun = _BEGUN.search(text)
        end = begun.start() if begun else len(text)
        self._held = [text[end:]] if begun else []
        self._goes_on = next((more for begin, more in _GOES_ON if begin.match(text, end)), None) if begun else None
        return self._cleaned(text[:end])

    def finish(self) -> str:
        """Return what was held back; nothing more comes."""
        held, self._held, self._goes_on = "".join(self._held), [], None
        return self._cleaned(held)

    def _cleaned(self, text: str) -> str:
        was_return = self._was_return
        if was_return:
            text = "\r" + text
        cleaned = clean_for_terminal(text)
        self._was_return = "\r" in text and clean_for_terminal(text + "\n") == cleaned
        return cleaned[1:] if was_return else cleaned
