"""Base of dialogs: keys, safe text, paging, and time to read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES
from wcwidth import iter_graphemes

from panpan.faces.terminal.rendering.cells import RESET
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.pattern import compile_late

NARROWEST = 16
"""Fewest cells of a row in which a dialog is shown."""

Answer = TypeVar("Answer")


class Dialog(ABC, Generic[Answer]):
    """Asks one thing: shows lines below the conversation and takes every key until it is answered.

    It is a state machine without a terminal: keys go in, lines come out. So it can be tested without one, and the one
    place that reads keys stays the one that decides who gets them.
    """

    blocks_turn = True
    """True if the turn waits for the answer."""
    is_transient = False
    """True if it is only for reading: it takes keys at once, and closes for typed text and other dialogs."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.cursor: tuple[int, int] | None = None
        """Row and cell of the caret in the rows drawn last; None if there is no text field."""

    @abstractmethod
    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the rows, with SGR sequences and at most as wide as `width`, which is `NARROWEST` or more."""

    def was_drawn(self) -> None:
        """Note that all rows that `lines` returned last are on the screen."""

    @property
    def escape_ends_turn(self) -> bool:
        """True if Esc, pressed now, also ends the turn."""
        return False

    def takes(self, key: str) -> bool:
        """Return True if a key means something here; otherwise it begins a text in the input box."""
        return True

    @abstractmethod
    def press(self, key: str) -> None:
        """Handle one key: a character as itself, or a name as in prompt_toolkit.

        Names in use: `enter`, `escape`, `up`, `down`, `left`, `right`, `tab`, `s-tab`, `backspace`, `delete`, `home`,
        `end`, `c-a`, `c-e`, `c-u`, `c-w`, `c-c`, `c-o`, `pageup`, `pagedown`.
        """

    @abstractmethod
    def paste(self, text: str) -> bool:
        """Insert pasted text if there is an open text field, and return True if there is; it never answers."""

    @abstractmethod
    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the whole dialog for a screen of lines; the last row says what to type."""

    @abstractmethod
    def take_line(self, said: str) -> str:
        """Handle a typed line, which is stripped; return the problem with it, or ""."""


_COLOUR = compile_late(r"(\x1b\[[0-9;]*m)")
_TAB = " " * 4


def prose(text: str) -> str:
    """Return a text of several lines without escape sequences."""
    return clean_for_terminal(text).replace("\t", _TAB)


def coloured_lines(line: str) -> list[str]:
    """Return a coloured line without escape sequences other than colours, split at its line breaks."""
    pieces = [piece if _COLOUR.fullmatch(piece) else prose(piece) for piece in _COLOUR.split(line)]
    lines = "".join(pieces).split("\n")
    has_colour = len(pieces) > 1
    return [f"{part}{RESET}" if has_colour and not part.endswith(RESET) else part for part in lines]


class Page:
    """Window of the rows on the screen, if not all fit."""

    def __init__(self) -> None:
        self.was_all_seen = False
        """True if every row has been on the screen."""
        self._seen = 0
        self._first = 0
        self._size = 1
        self._count = 0

    def of(self, rows: Sequence[str], size: int) -> Sequence[str]:
        """Return the rows in the window, which has room for `size`."""
        if len(rows) != self._count:
            self._seen = 0  # the rows were laid out again, for another width
        self._size, self._count = size, len(rows)
        self._first = max(min(self._first, len(rows) - size), 0)
        return rows[self._first : self._first + size]

    def was_drawn(self) -> None:
        if self._first <= self._seen:  # otherwise some were skipped
            self._seen = max(self._seen, self._first + self._size)
        self.was_all_seen = self.was_all_seen or self._seen >= self._count

    def note_all_seen(self) -> None:
        """Note that all rows were printed, without paging."""
        self.was_all_seen = True

    def reveal(self, rows: range, size: int) -> None:
        """Scroll so that some rows are visible, or the first of them if there is no room for all."""
        self._first = min(max(self._first, rows.stop - size), rows.start)

    def row_of(self, index: int) -> int | None:
        """Return the position of a row in the window; None if it is hidden."""
        return index - self._first if self._first <= index < self._first + self._size else None

    def turn(self, key: str) -> None:
        """Turn the page: forward with `pagedown`, otherwise back; one row stays, so that none is missed."""
        step = max(self._size - 1, 1)
        self.scroll(step if key == "pagedown" else -step)

    def scroll(self, rows: int) -> None:
        """Scroll down by a number of rows, or up if it is negative."""
        self._first = max(self._first + rows, 0)

    @property
    def is_cut(self) -> bool:
        return self._count > self._size

    def note(self, *, is_folded: bool) -> str:
        """Return a note on the hidden rows, with the keys that show them."""
        last = self._first + self._size
        if is_folded and last < self._count:
            return f"… {self._count - last} more lines: ctrl+o shows them"
        return f"lines {self._first + 1}-{last} of {self._count}: PgDn, PgUp"


QUIET_S = 0.4
"""Seconds without a key before a key counts for a new dialog; a fast typist strikes every 0.15 s."""


class IdleTimer:
    """Time that something has been on the screen without a key; `clock` is a monotonic clock in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None
        """Start of that time; None while it is not on the screen."""

    def begin(self) -> None:
        """Start the time, unless it has started already."""
        if self._since is None:
            self._since = self._clock()

    def restart(self) -> None:
        if self._since is not None:
            self._since = self._clock()

    def end(self) -> None:
        self._since = None

    def is_short_of(self, seconds: float) -> bool:
        """Return True if it is on the screen, but for less than `seconds` without a key."""
        return self._since is not None and not self.has_lasted(seconds)

    def has_lasted(self, seconds: float) -> bool:
        """Return True if it has been on the screen for `seconds` without a key."""
        return self._since is not None and self._clock() - self._since >= seconds


def is_letter(key: str) -> bool:
    """Return True if a key is a printable character, and not the name of a key."""
    return len(key) == 1 and key.isprintable()


class EarlyLetter:
    """Holds a letter that was typed before a dialog takes keys: an answer, or the beginning of a text.

    It answers nothing, and no letter of a text is lost. The next key decides: the same letter again is an answer,
    another letter makes both of them text, and any other key discards it.
    """

    def __init__(self) -> None:
        self._held = ""

    @property
    def letter(self) -> str:
        """Held letter, or ""."""
        return self._held[:1]

    def hold(self, key: str) -> str:
        """Hold a letter; if another one was held, return both as text."""
        held = self._held
        text = self.let_go(key)
        if not text:
            self._held = held + key
        return text

    def let_go(self, key: str) -> str:
        """Release the held letter at the next key; if both turn out to be text, return them."""
        held = self.take()
        return held + key if held and is_letter(key) and key != held[0] else ""

    def take(self) -> str:
        held, self._held = self._held, ""
        return held


_LINE_BREAKS = compile_late(r"[\t\n\x0b\x0c\r\x85\u2028\u2029]+")
_UNWANTED = compile_late("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = compile_late("[\ud800-\udfff]")
_LONGEST = 64
"""Most code points of one character; further combining marks are handled on their own."""
_NAMED_KEYS = frozenset(ALL_KEYS) | frozenset(KEY_ALIASES)


class LineEditor:
    """Line of text with a caret that moves by whole characters as people see them."""

    def __init__(self) -> None:
        self._before = ""
        self._after = ""

    @property
    def text(self) -> str:
        return self._before + self._after

    def press(self, key: str) -> bool:
        """Handle a key, named as in `Dialog.press`, and return True if it was an editing key."""
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
        """Insert text at the caret; line breaks become spaces, and control characters are left out."""
        line = _UNWANTED.sub("", _LINE_BREAKS.sub(" ", text))
        self._before += _SURROGATE.sub("\ufffd", line)

    def row(self, width: int) -> tuple[str, int]:
        """Return the part of the line around the caret, and the cell of the caret, which is below `width`."""
        before, at = "", 0
        for character in reversed([*iter_graphemes(self._before[-2 * width - _LONGEST :])]):
            shown = clean_for_terminal(character)
            if at + cell_width(shown) >= width:
                break
            before, at = shown + before, at + cell_width(shown)
        after, used = "", at
        for character in iter_graphemes(self._after[: 2 * width + _LONGEST]):
            shown = clean_for_terminal(character)
            if used + cell_width(shown) > width:
                break
            after, used = after + shown, used + cell_width(shown)
        return before + after, at


def _last(text: str) -> str:
    return ([*iter_graphemes(text[-_LONGEST:])] or [""])[-1]


def _first(text: str) -> str:
    return next(iter_graphemes(text[:_LONGEST]), "")
