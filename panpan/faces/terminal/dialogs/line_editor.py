"""An editor for one line, small enough to stand in a dialog."""

import re

from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES
from wcwidth import iter_graphemes

from panpan.faces.terminal.rendering.cells import cell_width
from panpan.system.text.terminal_text import clean_for_terminal

_LINE_BREAKS = re.compile(r"[\t\n\x0b\x0c\r\x85\u2028\u2029]+")
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST = 64
"""Code points of one character; of more marks on one letter, the rest is taken by itself."""
_NAMED_KEYS = frozenset(ALL_KEYS) | frozenset(KEY_ALIASES)


class LineEditor:
    """Holds one line and a caret, which moves over what people take for one character."""

    def __init__(self) -> None:
        self._before = ""
        self._after = ""

    @property
    def text(self) -> str:
        """What was typed, as it was typed."""
        return self._before + self._after

    def press(self, key: str) -> bool:
        """Take a key, named as in `Dialog.press`, and return whether it was one for an editor."""
        match key:
            case "backspace" | "c-h":
                self._before = self._before.removesuffix(_last(self._before))
            case "delete":
                self._after = self._after.removeprefix(_first(self._after))
            case "left":
                last = _last(self._before)
                self._before, self._after = self._before.removesuffix(last), last + self._after
            case "right":
                first = _first(self._after)
                self._before, self._after = self._before + first, self._after.removeprefix(first)
            case "home" | "c-a":
                self._before, self._after = "", self.text
            case "end" | "c-e":
                self._before, self._after = self.text, ""
            case "c-u":
                self._before = ""
            case "c-w":
                words = self._before.rstrip(" ")
                self._before = words[: words.rfind(" ") + 1]
            case _ if key in _NAMED_KEYS:
                return False
            case _:
                self.insert(key)
        return True

    def insert(self, text: str) -> None:
        """Put text at the caret; line breaks become spaces, and what drives a terminal is left out."""
        line = _UNWANTED.sub("", _LINE_BREAKS.sub(" ", text))
        self._before += _SURROGATE.sub("\ufffd", line)

    def row(self, width: int) -> tuple[str, int]:
        """Return the part of the line around the caret, and the cell of the caret, which is below `width`."""
        before, at = "", 0
        for character in reversed(_characters(self._before[-2 * width - _LONGEST :])):
            shown = clean_for_terminal(character)
            if at + cell_width(shown) >= width:
                break
            before, at = shown + before, at + cell_width(shown)
        after, used = "", at
        for character in _characters(self._after[: 2 * width + _LONGEST]):
            shown = clean_for_terminal(character)
            if used + cell_width(shown) > width:
                break
            after, used = after + shown, used + cell_width(shown)
        return before + after, at


def _characters(text: str) -> list[str]:
    """Return what people take for one character each."""
    return list(iter_graphemes(text))


def _last(text: str) -> str:
    return (_characters(text[-_LONGEST:]) or [""])[-1]


def _first(text: str) -> str:
    return (_characters(text[:_LONGEST]) or [""])[0]
