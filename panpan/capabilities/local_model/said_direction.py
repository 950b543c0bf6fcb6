"""Mends one fault of the small model: it takes the new word for the old one where the user names the new one first.

"Use tea instead of coffee": it replaces tea by coffee, finds no tea, and says that it is done. Where the words of the
user say which of the two is to stand there, the call is turned round before it is made.
"""

import re

from panpan.types.content import ToolUseBlock

_NAMES = {"Edit": ("old_string", "new_string"), "Rename": ("old_name", "new_name")}


def with_direction_as_said(use: ToolUseBlock, words: str) -> ToolUseBlock:
    """Return the call with old and new exchanged where `words` of the user say so; most are returned as they are."""
    if use.name not in _NAMES:
        return use
    old_key, new_key = _NAMES[use.name]
    old, new = use.input.get(old_key), use.input.get(new_key)
    if not isinstance(old, str) or not isinstance(new, str) or not _puts_first_for_second(words, old, new):
        return use
    return use.model_copy(update={"input": {**use.input, old_key: new, new_key: old}})


def _puts_first_for_second(words: str, first: str, second: str) -> bool:
    """Whether the words are "FIRST instead of SECOND" or another of the forms that name the new thing first."""
    if not first.strip() or not second.strip():
        return False
    a, b = (rf"[\"'`]?(?<!\w){re.escape(text.strip())}(?!\w)[\"'`]?" for text in (first, second))
    instead = r"(?:\(\))?,? (?:instead of|rather than|in place of|and not|not) (?:\w+ )?"
    return re.search(rf"{a}{instead}{b}|\bsubstitute {a} for {b}", words, re.IGNORECASE) is not None
