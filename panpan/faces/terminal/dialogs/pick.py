"""Dialog for picking from a list, with a search for the typed text."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from panpan.faces.terminal.dialogs.dialog import Dialog, LineEditor
from panpan.faces.terminal.rendering.cells import ListRow, ListRows, cut, fit_parts
from panpan.faces.terminal.rendering.displays import option_rows
from panpan.faces.terminal.screen.screen import Screen
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import Option, OptionSearch
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MOST_ROWS = 12
"""Most rows of a list that are on the screen at once."""
_NOTHING = "  nothing fits"
_LOOKING = "  nothing fits; looking further …"
_FRAME_ROWS = 3
"""Rows of the title, the typed text and the hint, which is left out first if there is no room."""


@dataclass(frozen=True, slots=True)
class NothingPicked:
    """Answer of a user who wants none of the options."""


@dataclass(frozen=True, slots=True)
class _Entry:
    index: int
    row: ListRow
    is_current: bool
    key: str

    @classmethod
    def of(cls, index: int, option: Option) -> Self:
        number = f"{option.key}. " if option.key else ""
        label = f"{'✓' if option.is_current else ' '} {number}{clean_line(option.label)}"
        return cls(index, ListRow(label, clean_line(option.detail)), option.is_current, option.key)

    def has(self, words: Sequence[str]) -> bool:
        text = f"{self.row.label} {self.row.detail}".casefold()
        return all(word in text for word in words)


class PickDialog(Dialog[int | NothingPicked]):
    """Lets the user pick one option; typed words narrow the list to the options that contain all of them.

    The key of an option picks it, as long as nothing is typed; a paste never does.

    `look_up` gets the typed text and may find options that are not listed; see `take_found`.
    """

    blocks_turn = False

    def __init__(
        self,
        title: str,
        options: Sequence[Option],
        *,
        room: Callable[[], int] = lambda: sys.maxsize,
        look_up: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self._title = clean_line(title)
        self._options = options
        self._entries = [_Entry.of(index, option) for index, option in enumerate(options)]
        self._matches: Sequence[_Entry] = self._entries
        self._selected = next((entry.index for entry in self._entries if entry.is_current), 0)
        self._top = 0
        self._filter = LineEditor()
        self._room = room
        self._look_up = look_up
        self._found: Sequence[_Entry] = ()
        """Options found for the typed text; empty until the search is done."""
        self._is_looking_up = False

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        typed, caret = self._filter.row(width - 2)
        self.cursor = (1, 2 + caret)
        drawing = ListRows([entry.row for entry in (*self._entries, *self._found)], width, theme)
        detail = drawing.detail_rows(self._matches[self._selected].row) if self._matches else []
        room = self._room()
        has_hint = room > _FRAME_ROWS + len(detail)
        frame = _FRAME_ROWS + len(detail) if has_hint else _FRAME_ROWS - 1
        most = min(max(room - frame, 1), MOST_ROWS)
        self._top = min(max(self._top, self._selected - most + 1), self._selected)
        shown = self._matches[self._top : self._top + most]
        rows = [drawing.row(entry.row, is_selected=at == self._selected) for at, entry in enumerate(shown, self._top)]
        note = self._note(len(shown))
        picks = "a number or enter picks" if any(entry.key for entry in self._entries) else "enter picks"
        keys = fit_parts([(picks, 1), ("esc leaves", 0), ("typing narrows", 2)], width - 2 - len(note), ", ")
        hint = theme.paint("dim", cut(f"  {note}{keys}", width))
        return [
            theme.paint("question", cut(f"? {self._title}", width)),
            f"{theme.paint('accent', '/')} {typed}",
            *(rows or [theme.paint("dim", cut(_LOOKING if self._is_looking_up else _NOTHING, width))]),
            *([*detail, hint] if has_hint else []),
        ]

    def press(self, key: str) -> None:
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
                keyed = [entry.index for entry in self._entries if entry.key == key]
                if keyed and not before:
                    self.answer = keyed[0]
                    return
                self._filter.press(key)
                self._narrow(before)

    def paste(self, text: str) -> bool:
        """Narrow the list to options with the pasted words; picks nothing."""
        if self.answer is None:
            before = self._filter.text
            self._filter.insert(text)
            self._narrow(before)
        return True

    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        title = theme.paint("question", f"? {self._title}")
        return [title, *option_rows(self._options, width, theme), "  a number picks one, an empty line none: "]

    def take_line(self, said: str) -> str:
        numbers = {str(number): index for index, number in enumerate(range(1, len(self._options) + 1))}
        if not said:
            self.answer = NothingPicked()
        elif said in numbers:
            self.answer = numbers[said]
        else:
            return f"there is no number {clean_line(said)} in this list"
        return ""

    def take_found(self, typed: str, found: Mapping[int, Option]) -> None:
        """Add the options that were found for `typed` below the matches, unless the text has changed meanwhile."""
        if self.answer is None and typed == self._filter.text:
            self._is_looking_up = False
            shown = {entry.index for entry in self._matches}
            self._found = [_Entry.of(index, option) for index, option in found.items() if index not in shown]
            self._matches = [*self._matches, *self._found]

    def _narrow(self, before: str) -> None:
        if self._filter.text != before:
            words = self._filter.text.casefold().split()
            self._matches, self._found = [entry for entry in self._entries if entry.has(words)], ()
            self._selected = self._top = 0
            if self._look_up is not None:
                self._is_looking_up = True
                self._look_up(self._filter.text)

    def _note(self, shown: int) -> str:
        total = len(self._matches)
        return f"{self._top + 1}-{self._top + shown} of {total}; " if shown < total else ""


PAUSE_S = 0.15
"""Seconds without a key before the typed text is looked up."""


async def pick_option(
    screen: Screen, title: str, options: Sequence[Option], search: OptionSearch | None = None
) -> int | None:
    """Return the index of the picked option, listed or found by `search`; None if the user wants none."""
    send, receive = anyio.create_memory_object_stream[str](float("inf"))
    dialog = PickDialog(title, options, room=lambda: screen.room, look_up=None if search is None else send.send_nowait)
    with send, receive:
        async with anyio.create_task_group() as tasks:
            if search is not None:
                tasks.start_soon(_look_up, dialog, receive, search, screen.refresh)
            answer = await screen.ask(dialog)
            tasks.cancel_scope.cancel("something was picked")
    return None if isinstance(answer, NothingPicked) else answer


async def _look_up(
    dialog: PickDialog, typed: MemoryObjectReceiveStream[str], search: OptionSearch, refresh: Callable[[], None]
) -> None:
    while True:
        text = await typed.receive()
        await anyio.sleep(PAUSE_S)
        while typed.statistics().current_buffer_used:
            text = typed.receive_nowait()
        dialog.take_found(text, await search(text) if text.strip() else {})
        refresh()
