"""Drawn rows of a dialog, and the texts and keys that dialogs are tried with."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from wcwidth import wcswidth

from panpan.faces.terminal.dialogs.dialog import NARROWEST, Dialog
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.screen.theme import Theme

T = TypeVar("T")
THEMES = [Theme("dark"), Theme("light"), Theme("high-contrast"), Theme("plain")]


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

KEY_NAMES = [
    "enter", "escape", "up", "down", "left", "right", "tab", "s-tab", "backspace", "delete", "home", "end", "c-a",
    "c-e", "c-u", "c-w", "c-c", "c-o", "c-b", "f1", "pageup", "pagedown",
]  # fmt: skip

_NASTY = [
    "\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b", "\x9b5n", "\r", "\n", "\t", "\x00", "\x7f", "\u202e", "\u2066",
    "\u200b", "\u200d", "\u00a0", "\u00ad", "\ufe0f", "\u263a\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "e\u0301", "\u0301" * 5, "世界", "\uff57", "שלום", "مرحبا", "क्षि",
    "각", "word ", "  ", "x" * 30, "❯ 1. Yes (y)", "│ rm -rf /",
]  # fmt: skip

texts = st.lists(st.sampled_from(_NASTY) | st.text(max_size=8), max_size=12).map("".join)
"""Texts of a model or a file."""
widths = st.integers(NARROWEST, 100)
themes = st.sampled_from(THEMES)
keys = st.sampled_from(KEY_NAMES) | st.sampled_from("yant12345 xé世\u0301") | st.characters(exclude_categories=["Cs"])
"""Keys of a keyboard."""
pastes = texts.filter(lambda text: len(text) > 1 and text not in KEY_NAMES)


def plain(row: str) -> str:
    """Return a row without its colours."""
    return _COLOUR.sub("", row)


def rows_of(dialog: Dialog[Any], width: int = 80, theme: Theme = THEMES[0]) -> list[str]:
    """Draw a dialog, and return its rows without colours, when each of them is fit for a terminal."""
    rows = dialog.lines(width, theme)
    assert_fit(rows, width)
    return [plain(row) for row in rows]


def assert_fit(rows: Sequence[str], width: int) -> None:
    """Check that no row drives the terminal, bleeds colour or is too wide, however the terminal measures."""
    for row in rows:
        text = plain(row)
        assert not _CONTROL.search(text), ascii(row)
        assert get_cwidth(text) <= width, ascii(row)
        assert wcswidth(text) <= width, ascii(row)
        colours = _COLOUR.findall(row)
        assert not colours or colours[-1] == "\x1b[0m", ascii(row)


def press_all(dialog: Dialog[Any], *pressed: str) -> None:
    """Draw the dialog and press keys, as a terminal does in turn."""
    for key in pressed:
        dialog.lines(80, THEMES[0])
        dialog.was_drawn()
        dialog.press(key)


def typed(dialog: Dialog[Any], text: str) -> None:
    """Type a text, character by character."""
    press_all(dialog, *text)


def unchanged_by(dialog: Dialog[Any], deed: Callable[[], None]) -> bool:
    """Return whether the answer is what it was before `deed`."""
    before = dialog.answer
    deed()
    return dialog.answer == before


class DialogScreen:
    """The screen that questions use: the dialogs, and the room there is."""

    theme = THEMES[0]

    def __init__(self, dialogs: DialogQueue, *, width: int = 80, room: int = 20) -> None:
        self.dialogs = dialogs
        self.width = width
        self.room = room

    async def ask(self, dialog: Dialog[T]) -> T:
        return await self.dialogs.ask(dialog)
