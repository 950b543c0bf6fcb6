"""Marks around text that strangers wrote, for the model: data, never instructions.

The rule: nothing in the text can end its mark, or begin one of panpan's own.
"""

import re
from typing import Literal, TypeAlias

from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.pattern import compile_late

Mark: TypeAlias = Literal["web-content", "mcp-content"]

_OWN_TAG = compile_late(r"<(?=\s*/?\s*(?:web-content|mcp-content|system-reminder))", re.IGNORECASE)
_UNSEEN_JOINERS = compile_late(r"(?<=[\s!\"$-)+-/:-~])[\u200c\u200d\ufe00-\ufe0f]+")
"""Joiners behind blanks, ASCII letters and signs, except where they make emoji: they join nothing, and hide a tag."""


def without_tags(text: str) -> str:
    """Return text in which no tag of panpan's own begins."""
    text = text if text.isascii() else _UNSEEN_JOINERS.sub("", text)
    return _OWN_TAG.sub("&lt;", text) if "<" in text else text


def clean_untrusted(text: object, max_bytes: int) -> str:
    """Return text of a stranger without control characters and tags of panpan's own, and cut; other things are none."""
    data = without_tags(clean_for_terminal(text if isinstance(text, str) else "")).strip().encode()
    return data.decode() if len(data) <= max_bytes else f"{data[:max_bytes].decode(errors='ignore')}…"


def mark_untrusted(text: str, mark: Mark, source: str) -> str:
    """Return text between tags that name where it is from; control characters are gone from it.

    Args:
        text: The text of a stranger.
        mark: Name of the tags.
        source: Its place, in ASCII.
    """
    body = without_tags(clean_for_terminal(text)).strip("\n")
    named = source.replace('"', "%22").replace("<", "%3C")
    return f'<{mark} source="{named}">\n{body}\n</{mark}>'
