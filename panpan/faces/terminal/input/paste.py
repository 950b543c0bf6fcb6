"""Long pastes: a few words stand for them in the input, and they are sent whole.

The rule: only the exact words that were put there stand for a paste. Words that were changed are words of the user's;
so one backspace takes all of them (`span_before`), and no half of them is left by accident.
"""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from panpan.capabilities.mentions.mention_syntax import written
from panpan.errors import PanpanError
from panpan.system.text.terminal_text import without_controls

MAX_SHOWN_LINES = 10
MAX_SHOWN_CHARS = 1_000
"""A longer paste is folded."""
MAX_PASTE_CHARS = 5_000_000
"""Far more than any context window; so much comes by mistake."""

_IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_ESCAPED = re.compile(r"\\(.)")


class PasteTooLargeError(PanpanError):
    """A paste has more characters than the input takes."""


class Pastes:
    """What was pasted in this run, by the words that stand for it."""

    def __init__(self) -> None:
        self._text_by_words: dict[str, str] = {}

    def fold(self, pasted: str) -> str:
        """Return what to put into the input for a paste: its text, cleaned, or words that stand for it.

        Raises:
            PasteTooLargeError: It has more than `MAX_PASTE_CHARS`.
        """
        if len(pasted) > MAX_PASTE_CHARS:
            raise PasteTooLargeError(
                f"the paste has {len(pasted):,} characters and {MAX_PASTE_CHARS:,} are possible; "
                "save it in a file and mention that with @"
            )
        text = without_controls(pasted)
        lines = text.removesuffix("\n").count("\n") + 1
        if lines <= MAX_SHOWN_LINES and len(text) <= MAX_SHOWN_CHARS:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        words = f"[pasted #{len(self._text_by_words) + 1}: {size}]"
        self._text_by_words[words] = text
        return words

    def unfold(self, text: str) -> str:
        """Return `text` with every paste whole."""
        return self._words().sub(lambda match: self._text_by_words[match[0]], text) if self._text_by_words else text

    def span_before(self, text: str, cursor: int) -> int:
        """Return how many characters a backspace at `cursor` should delete: all words of a paste, or 1, or 0."""
        before = text[:cursor]
        found = next((words for words in self._text_by_words if before.endswith(words)), None)
        return len(found) if found else min(1, len(before))

    def _words(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._text_by_words)))


def image_mention(pasted: str, is_file: Callable[[Path], bool] = Path.is_file) -> str | None:
    """Return a mention of the picture whose path was pasted, as terminals do it when a file is dropped on them.

    Args:
        pasted: The whole paste.
        is_file: Says whether there is such a file.

    Returns:
        None where it is anything but the absolute path of one picture: quoted, with backslashes, or as `file://`.
    """
    text = pasted.strip()
    if "\n" in text or len(text) > 4096:
        return None
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    elif "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    path = Path(text)
    if not path.is_absolute() or path.suffix.lower() not in _IMAGE_SUFFIXES or '"' in text or not text.isprintable():
        return None
    try:
        return written(text) if is_file(path) else None
    except (OSError, ValueError):
        return None
