"""Text of the project, made safe to stand in a reminder: it cannot close the tags around it."""

import re

_OUR_TAGS = re.compile(r"<(?=\s{0,9}/?\s{0,9}(?:system-reminder|context|rules)\b)", re.IGNORECASE)


def untagged(text: str) -> str:
    """Return `text` with the tags defused that panpan itself sets around it."""
    return _OUR_TAGS.sub("&lt;", text)
