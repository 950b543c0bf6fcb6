"""The text that the user is typing, with long pastes folded; cleared text can be restored."""

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio

from panpan.errors import PanpanError
from panpan.faces.terminal.input.clipboard import save_picture
from panpan.faces.terminal.input.input_box import CommandCompletion, InputBox
from panpan.system.files.folder_tree import remove_tree
from panpan.system.text.terminal_text import without_controls
from panpan.types.attachments import quote_path
from panpan.types.pattern import compile_late


def with_line_break(text: str, cursor: int) -> tuple[str, int] | None:
    """Return text and cursor if Enter follows a backslash, which becomes a line break; None for any other Enter.

    Two backslashes are an escaped backslash, and no line break.
    """
    before = text[:cursor]
    backslashes = len(before) - len(before.rstrip("\\"))
    if backslashes % 2 == 0:
        return None
    return f"{before[:-1]}\n{text[cursor:]}", cursor


# A long paste is shown as a placeholder of a few words. Only the exact words count: once changed, they are the user's
# text. So one backspace deletes the whole placeholder (`span_before`), and no half of it is left by accident.

MAX_SHOWN_LINES = 10
MAX_SHOWN_CHARS = 1_000
"""A longer paste is folded."""
MAX_PASTE_CHARS = 5_000_000
"""Most characters of a paste: far more than any context window, so a larger one is a mistake."""

_IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_ESCAPED = compile_late(r"\\(.)")


class PasteTooLargeError(PanpanError):
    """A paste has more characters than the input takes."""


class Pastes:
    """Folded pastes of this run, by their placeholders."""

    def __init__(self) -> None:
        self._text_by_words: dict[str, str] = {}

    def fold(self, pasted: str) -> str:
        """Return the text to insert for a paste: the cleaned paste, or a placeholder if it is long.

        Raises:
            PasteTooLargeError: The paste has more than `MAX_PASTE_CHARS`.
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
        if not self._text_by_words:
            return text
        words = "|".join(map(re.escape, self._text_by_words))
        return re.sub(words, lambda match: self._text_by_words[match[0]], text)

    def span_before(self, text: str, cursor: int) -> int:
        """Return the number of characters that a backspace at `cursor` deletes: a whole placeholder, or 1, or 0."""
        before = text[:cursor]
        found = next((words for words in self._text_by_words if before.endswith(words)), None)
        return len(found) if found else min(1, len(before))


def image_mention(pasted: str, is_file: Callable[[Path], bool] = Path.is_file) -> str | None:
    """Return a mention of the picture whose path was pasted, as terminals do for a dropped file.

    None for anything but the absolute path of one picture: plain, quoted, with backslashes, or as `file://`.
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
        return quote_path(text) if is_file(path) else None
    except (OSError, ValueError):
        return None


MAX_STASHED = 20
"""Most cleared texts that can be restored."""


class Draft:
    """A text that is not sent yet."""

    def __init__(self, box: InputBox, pastes: Pastes) -> None:
        self._box = box
        self._pastes = pastes
        self._stashed: list[str] = []
        """Cleared texts, the newest last."""

    @property
    def text(self) -> str:
        """Text of the input box, with pastes folded."""
        return self._box.text

    @property
    def unfolded(self) -> str:
        """Text with every paste unfolded, and without line breaks at the end."""
        return self._pastes.unfold(self._box.text.rstrip("\n"))

    def take(self) -> str:
        """Return the text to send, add it to the history, and clear the input; "" if there is nothing to send."""
        if not self.text.strip():
            return ""
        text = self.unfolded
        self._box.keep_in_history(text)
        return text

    def put(self, text: str) -> None:
        self._box.put(text)

    def append(self, text: str) -> None:
        """Add text of a program after the typed text, folded if it is long.

        Raises:
            PasteTooLargeError: It is larger than the input takes.
        """
        self._box.replace(self._box.text + self._pastes.fold(text))

    def return_prompt(self, text: str) -> None:
        """Put a sent text back before the typed text, on lines of its own."""
        self._box.put(text if self.text else f"{text}\n")

    def replace(self, text: str) -> None:
        self._box.replace(text)

    def clear(self) -> bool:
        """Clear the input, keeping the text for `bring_back`; return True if there was any."""
        text = self._box.text
        if text.strip():
            self._stashed = [*self._stashed[1 - MAX_STASHED :], text]
        self._box.clear()
        return bool(text.strip())

    def bring_back(self) -> bool:
        """Restore the text that was cleared last; return True if there was any."""
        if not self._stashed:
            return False
        self._box.put(self._stashed.pop())
        return True

    def insert(self, text: str) -> None:
        self._box.buffer.insert_text(text)

    def paste(self, text: str) -> None:
        """Insert pasted text at the caret, folded if it is long.

        Raises:
            PasteTooLargeError: The paste is larger than the input takes.
        """
        self.insert(image_mention(text) or self._pastes.fold(text))

    def backspace(self) -> None:
        """Delete the character or the whole placeholder before the caret."""
        buffer = self._box.buffer
        buffer.delete_before_cursor(self._pastes.span_before(buffer.text, buffer.cursor_position))

    def enter(self) -> str:
        """Handle Enter: break the line, complete, or send; return the text to send, or ""."""
        return "" if self.break_line() or self.complete() else self.take()

    def complete(self) -> bool:
        """Take the offered completion; return False if Enter then sends: there was none, or it completes a command."""
        suggestion = self._box.menu.suggestion
        if suggestion is None:
            return False
        self._box.buffer.apply_completion(suggestion)
        is_whole = self._box.buffer.document.is_cursor_at_the_end
        return not (is_whole and isinstance(suggestion, CommandCompletion) and suggestion.can_run)

    def break_line(self) -> bool:
        r"""Replace a backslash before the caret by a line break; return True if there was one."""
        buffer = self._box.buffer
        if (begun := with_line_break(buffer.text, buffer.cursor_position)) is None:
            return False
        buffer.text, buffer.cursor_position = begun
        return True

    def cancel_completion(self) -> bool:
        """Close the list of completions; return True if it was open."""
        buffer = self._box.buffer
        if buffer.complete_state is None:
            return False
        buffer.cancel_completion()
        return True


class ClipboardPaste:
    """Pastes pictures into the draft.

    `add_folder` allows mentions of files in one more folder, and may raise `PanpanError`; `say` gets the reason if a
    picture cannot be pasted.
    """

    def __init__(
        self,
        draft: Draft,
        env: Mapping[str, str],
        add_folder: Callable[[Path], object],
        say: Callable[[str], None],
    ) -> None:
        self._draft = draft
        self._env = env
        self._add_folder = add_folder
        self._say = say
        self._is_wanted = anyio.Event()
        self._pasted = 0

    def want(self) -> None:
        """Request the picture in the clipboard; `run` inserts a mention of it at the caret."""
        self._is_wanted.set()

    async def run(self) -> None:
        """Paste requested pictures until cancelled, then delete the files; sent messages hold the pictures."""
        folder: Path | None = None
        try:
            while True:
                await self._is_wanted.wait()
                self._is_wanted = anyio.Event()
                try:
                    folder = folder or self._new_folder()
                    await self._paste(folder)
                except (PanpanError, OSError) as error:
                    self._say(f"the picture cannot be kept in a file: {error}")
        finally:
            if folder is not None:
                with suppress(OSError):
                    remove_tree(folder)

    def _new_folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="panpan-pictures-"))
        self._add_folder(folder)
        return folder

    async def _paste(self, folder: Path) -> None:
        self._pasted += 1
        file = folder / f"picture-{self._pasted}.png"
        problem = await save_picture(file, self._env)
        if problem:
            self._say(problem)
        else:
            self._draft.insert(f"{quote_path(str(file))} ")
