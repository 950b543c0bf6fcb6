"""Marking what comes from the web, so that the model can tell it from what panpan says.

The rule: nothing in the text can end its mark.
"""

import re

from panpan.system.terminal_text import clean_for_terminal, clean_line

TAG = "web-content"
_OWN_TAG = re.compile(rf"<(?=\s*/?\s*{TAG})", re.IGNORECASE)


def marked(text: str, source: str) -> str:
    """Return text of the web between tags that name where it is from; control characters are gone from it.

    Args:
        text: As it came.
        source: An address or a name.
    """
    body = _OWN_TAG.sub("&lt;", clean_for_terminal(text)).strip("\n")
    named = clean_line(source).replace('"', "%22").replace("<", "%3C")
    return f'<{TAG} source="{named}">\n{body}\n</{TAG}>'
