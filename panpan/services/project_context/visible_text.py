"""Text of the project, made safe to stand in a reminder: it cannot close the tags around it, nor hide characters."""

import re

_OUR_TAGS = re.compile(r"<(?=\s{0,9}/?\s{0,9}(?:system-reminder|context|rules)\b)", re.IGNORECASE)


def untagged(text: str) -> str:
    """Return `text` with the tags defused that panpan itself sets around it."""
    return _OUR_TAGS.sub("&lt;", text)


def visible(name: str) -> str:
    """Return a file name on one line, with escapes for what cannot be seen or encoded."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)
