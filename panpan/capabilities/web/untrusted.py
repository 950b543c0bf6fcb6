"""Marking what comes from the web, so that the model can tell it from what panpan says.

The rule: nothing in the text can end its mark, or begin one of panpan's own. What is told of a page outside of the mark
is panpan's own words, numbers, and addresses in ASCII.
"""

import re
from urllib.parse import quote

from panpan.system.text.terminal_text import clean_for_terminal, clean_line

TAG = "web-content"
MAX_SHOWN_CHARS = 500
"""Of an address that nobody has to ask for."""
_OWN_TAG = re.compile(rf"<(?=\s*/?\s*(?:{TAG}|system-reminder))", re.IGNORECASE)
_UNSEEN_JOINERS = re.compile(r"(?<=[ -\"$-)+-/:-~])[\u200c\u200d\ufe00-\ufe0f]+")
"""Joiners behind ASCII letters and signs, but for those of which emoji are made: they join nothing, and hide a tag."""


def marked(text: str, source: str) -> str:
    """Return text of the web between tags that name where it is from; control characters are gone from it.

    Args:
        text: As it came.
        source: An address or a name.
    """
    body = _OWN_TAG.sub("&lt;", _UNSEEN_JOINERS.sub("", clean_for_terminal(text))).strip("\n")
    named = in_ascii(source, MAX_SHOWN_CHARS).replace('"', "%22").replace("<", "%3C")
    return f'<{TAG} source="{named}">\n{body}\n</{TAG}>'


def in_ascii(url: str, most: int | None = None) -> str:
    """Return an address that a server chose, so that it reads as an address and as no sentence of another script.

    Args:
        url: As it came; without blanks, as the URL guard leaves it.
        most: Characters after which it is cut; None: it is to be asked for, and stays whole.
    """
    plain = "".join(char if char.isascii() else quote(char, errors="replace") for char in clean_line(url))
    return plain if most is None or len(plain) <= most else f"{plain[:most]}…"
