"""What the user is typing, with the pastes that are folded in it; nothing of it is lost by being cleared."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from panpan.errors import PanpanError
from panpan.faces.terminal.input.input_box import CommandCompletion, InputBox
from panpan.system.text.terminal_text import without_controls
from panpan.types.mentions import written


def with_line_break(text: str, cursor: int) -> tuple[str, int] | None:
    r"""Return text and cursor after Enter behind a backslash, which becomes a line break; None where Enter is Enter.

    Two backslashes are one that is meant, and no line break.

    Args:
        text: What is typed.
        cursor: Where the caret is, in characters.
    """
    before = text[:cursor]
    backslashes = len(before) - len(before.rstrip("\\"))
    if backslashes % 2 == 0:
        return None
    return f"{before[:-1]}\n{text[cursor:]}", cursor


# Long pastes: a few words stand for them in the input, and they are sent whole.
#
# The rule: only the exact words that were put there stand for a paste. Words that were changed are words of the
# user's; so one backspace takes all of them (`span_before`), and no half of them is left by accident.

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


MAX_STASHED = 20
"""So many texts can be brought back."""


class Draft:
    """A text that is not sent yet.

    Args:
        box: Where it is typed.
        pastes: What the words stand for that long pastes are folded to.
    """

    def __init__(self, box: InputBox, pastes: Pastes) -> None:
        self._box = box
        self._pastes = pastes
        self._stashed: list[str] = []
        """What was put aside, the newest last."""

    @property
    def text(self) -> str:
        """As it stands in the input."""
        return self._box.text

    @property
    def unfolded(self) -> str:
        """With every paste whole, and without line breaks behind it."""
        return self._pastes.unfold(self._box.text.rstrip("\n"))

    def take(self) -> str:
        """Return what is to be sent, keep it in the history, and empty the input; empty where there is nothing."""
        if not self.text.strip():
            return ""
        text = self.unfolded
        self._box.keep_in_history(text)
        return text

    def put(self, text: str) -> None:
        """Put text before what is typed."""
        self._box.put(text)

    def give_back(self, text: str) -> None:
        """Put text that was sent before what is typed; what is typed next, maybe that moment, joins neither."""
        self._box.put(text if self.text else f"{text}\n")

    def replace(self, text: str) -> None:
        """Let other text be what is typed."""
        self._box.replace(text)

    def clear(self) -> bool:
        """Put what is typed aside, so that the input is empty; return whether there was anything."""
        text = self._box.text
        if text.strip():
            self._stashed = [*self._stashed[1 - MAX_STASHED :], text]
        self._box.clear()
        return bool(text.strip())

    def bring_back(self) -> bool:
        """Put what was put aside last into the input; return whether there was anything."""
        if not self._stashed:
            return False
        self._box.put(self._stashed.pop())
        return True

    def insert(self, text: str) -> None:
        """Put text where the caret is."""
        self._box.buffer.insert_text(text)

    def paste(self, text: str) -> None:
        """Put pasted text where the caret is, folded if it is long.

        Raises:
            PasteTooLargeError: It is larger than the input takes.
        """
        self.insert(image_mention(text) or self._pastes.fold(text))

    def backspace(self) -> None:
        """Delete what stands before the caret: a character, or all that stands for a paste."""
        buffer = self._box.buffer
        buffer.delete_before_cursor(self._pastes.span_before(buffer.text, buffer.cursor_position))

    def enter(self) -> str:
        """Do what Enter does: break the line, complete, or send; return what is to be sent, empty where nothing is."""
        return "" if self.break_line() or self.complete() else self.take()

    def complete(self) -> bool:
        """Take what the list of completions offers; return whether that is all, as it is but for whole commands."""
        offered = self._box.menu.offered
        if offered is None:
            return False
        self._box.buffer.apply_completion(offered)
        is_whole = self._box.buffer.document.is_cursor_at_the_end
        return not (is_whole and isinstance(offered, CommandCompletion) and offered.can_run)

    def break_line(self) -> bool:
        r"""Let a backslash before the caret become a line break; return whether there was one."""
        buffer = self._box.buffer
        if (begun := with_line_break(buffer.text, buffer.cursor_position)) is None:
            return False
        buffer.text, buffer.cursor_position = begun
        return True

    def cancel_completion(self) -> bool:
        """Close the list of completions; return whether it was open."""
        buffer = self._box.buffer
        if buffer.complete_state is None:
            return False
        buffer.cancel_completion()
        return True
