"""Picking one line of a list."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from panpan.ui.repl.commands.command import Option
from panpan.ui.repl.dialogs.harmless import on_one_line
from panpan.ui.repl.dialogs.line_editor import LineEditor
from panpan.ui.repl.rendering.cells import cell_width, cut
from panpan.ui.repl.rendering.fitting import fitted
from panpan.ui.repl.theme import Theme

MOST_ROWS = 12
"""Of a long list, on the screen at once."""
_FRAME_ROWS = 3
"""The title, what is typed, and the hint, which goes first where there is no room."""
_MARKS = "❯ ✓ "
_GAP = "  "


@dataclass(frozen=True, slots=True)
class NothingPicked:
    """The user does not want any of them."""


@dataclass(frozen=True, slots=True)
class _Entry:
    index: int
    label: str
    detail: str
    is_current: bool

    def has(self, words: Sequence[str]) -> bool:
        text = f"{self.label} {self.detail}".casefold()
        return all(word in text for word in words)


class PickDialog:
    """Lets the user pick one option; what he types narrows the list to what has every word of it.

    Args:
        title: What is picked, on one line.
        options: What there is; the current one is selected at first.
        room: Returns how many rows there are for the dialog; asked at each drawing.
    """

    def __init__(self, title: str, options: Sequence[Option], *, room: Callable[[], int] = lambda: sys.maxsize) -> None:
        self.answer: int | NothingPicked | None = None
        """Index of the option that was picked."""
        self.cursor: tuple[int, int] | None = None
        """Row and cell of the caret in what was drawn last."""
        self._title = on_one_line(title)
        self._entries = [
            _Entry(index, on_one_line(option.label), on_one_line(option.detail), option.is_current)
            for index, option in enumerate(options)
        ]
        self._matches: Sequence[_Entry] = self._entries
        self._label_width = max((cell_width(entry.label) for entry in self._entries), default=0)
        self._detail_width = max((cell_width(entry.detail) for entry in self._entries), default=0)
        self._selected = next((entry.index for entry in self._entries if entry.is_current), 0)
        self._top = 0
        self._filter = LineEditor()
        self._room = room

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the title, what was typed, and the part of the list around what is selected."""
        typed, caret = self._filter.row(width - 2)
        self.cursor = (1, 2 + caret)
        room = self._room()
        has_hint = room > _FRAME_ROWS
        most = min(max(room - (_FRAME_ROWS if has_hint else _FRAME_ROWS - 1), 1), MOST_ROWS)
        self._top = min(max(self._top, self._selected - most + 1), self._selected)
        shown = self._matches[self._top : self._top + most]
        rows = [
            self._row(entry, is_selected=at == self._selected, width=width, theme=theme)
            for at, entry in enumerate(shown, self._top)
        ]
        note = self._note(len(shown))
        keys = fitted([("enter picks", 1), ("esc leaves", 0), ("typing narrows", 2)], width - 2 - len(note), ", ")
        hint = theme.paint("dim", cut(f"  {note}{keys}", width))
        return [
            theme.paint("question", cut(f"? {self._title}", width)),
            f"{theme.paint('accent', '/')} {typed}",
            *(rows or [theme.paint("dim", cut("  nothing fits", width))]),
            *([hint] if has_hint else []),
        ]

    def was_drawn(self) -> None:
        """Nothing depends on what has been seen."""

    def takes(self, key: str) -> bool:
        """Return whether a key means something: all do, since letters are typed here."""
        return True

    def press(self, key: str) -> None:
        """Take one key."""
        if self.answer is not None:
            return
        last = max(len(self._matches) - 1, 0)
        match key:
            case "enter":
                if self._matches:
                    self.answer = self._matches[self._selected].index
            case "escape" | "c-c":
                self.answer = NothingPicked()
            case "up" | "s-tab":
                self._selected = self._selected - 1 if self._selected else last
            case "down" | "tab":
                self._selected = self._selected + 1 if self._selected < last else 0
            case "pageup":
                self._selected = max(self._selected - MOST_ROWS, 0)
            case "pagedown":
                self._selected = min(self._selected + MOST_ROWS, last)
            case _:
                before = self._filter.text
                self._filter.press(key)
                self._narrow(before)

    def paste(self, text: str) -> None:
        """Narrow the list to what has pasted words; picks nothing."""
        if self.answer is None:
            before = self._filter.text
            self._filter.insert(text)
            self._narrow(before)

    def _narrow(self, before: str) -> None:
        """Show what fits, where what was typed has changed."""
        if self._filter.text != before:
            words = self._filter.text.casefold().split()
            self._matches = [entry for entry in self._entries if entry.has(words)]
            self._selected = self._top = 0

    def _note(self, shown: int) -> str:
        total = len(self._matches)
        return f"{self._top + 1}-{self._top + shown} of {total}; " if shown < total else ""

    def _row(self, entry: _Entry, *, is_selected: bool, width: int, theme: Theme) -> str:
        """Return one option; the details stand below each other and leave the labels at least half of the row."""
        room = width - len(_MARKS)
        column = max(room - len(_GAP) - self._detail_width, room // 2) if self._detail_width else room
        column = min(column, self._label_width)
        label = cut(entry.label, column)
        detail = cut(entry.detail, room - column - len(_GAP))
        gap = " " * (column - cell_width(label)) + _GAP if detail else ""
        left = f"{'❯' if is_selected else ' '} {'✓' if entry.is_current else ' '} {label}"
        return (theme.paint("accent", left) if is_selected else left) + theme.paint("dim", gap + detail)
