"""The base of dialogs: keys, harmless text, parts of many rows, and time to read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES
from wcwidth import iter_graphemes

from panpan.faces.terminal.rendering.cells import RESET, cell_width
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal

NARROWEST = 16
"""Cells; in a narrower row no dialog is shown."""

Answer = TypeVar("Answer")


class Dialog(ABC, Generic[Answer]):
    """Asks one thing: shows lines below the conversation and takes every key until it is answered.

    It is a state machine without a terminal: keys go in, lines come out. So it can be tested without one, and the one
    place that reads keys stays the one that decides who gets them.
    """

    holds_up_turn = True
    """True if the turn stands still until there is an answer."""
    is_passing = False
    """True if it is only to be read: it takes keys at once, and goes away for what is typed and for other dialogs."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.cursor: tuple[int, int] | None = None
        """Row and cell of the caret in what was drawn last; None where nothing is typed."""

    @abstractmethod
    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the rows, with SGR sequences and at most as wide as `width`, which is `NARROWEST` or more."""

    def was_drawn(self) -> None:
        """Note that all that `lines` returned last is on the screen."""

    @property
    def escape_ends_turn(self) -> bool:
        """True if Esc, pressed now, ends the turn, too."""
        return False

    def takes(self, key: str) -> bool:
        """Return whether a key means something here, so that it is not the beginning of a text for the input."""
        return True

    @abstractmethod
    def press(self, key: str) -> None:
        """Take one key: a character as itself, or a name as prompt_toolkit has it.

        Names in use: `enter`, `escape`, `up`, `down`, `left`, `right`, `tab`, `s-tab`, `backspace`, `delete`, `home`,
        `end`, `c-a`, `c-e`, `c-u`, `c-w`, `c-c`, `c-o`, `pageup`, `pagedown`.
        """

    @abstractmethod
    def paste(self, text: str) -> bool:
        """Take pasted text where something is typed, and return whether that is so; it never answers."""

    @abstractmethod
    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return all of it, for where nothing is drawn again; the last row says what may be typed behind it."""

    @abstractmethod
    def take_line(self, said: str) -> str:
        """Take a line that was typed, without blanks around it; return what is wrong with it, or nothing."""


_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_TAB = " " * 4


def prose(text: str) -> str:
    """Return a text of several lines without anything that drives a terminal."""
    return clean_for_terminal(text).replace("\t", _TAB)


def coloured_lines(line: str) -> list[str]:
    """Return a coloured line with nothing but its colours to drive a terminal; as several where it has breaks."""
    pieces = [piece if _COLOUR.fullmatch(piece) else prose(piece) for piece in _COLOUR.split(line)]
    lines = "".join(pieces).split("\n")
    has_colour = len(pieces) > 1
    return [f"{part}{RESET}" if has_colour and not part.endswith(RESET) else part for part in lines]


class Page:
    """The rows that are shown where not all fit."""

    def __init__(self) -> None:
        self.was_all_seen = False
        """True if every row has been on the screen."""
        self._seen = 0
        self._first = 0
        self._size = 1
        self._count = 0

    def of(self, rows: Sequence[str], size: int) -> Sequence[str]:
        """Return the rows that are shown where there is room for `size`."""
        if len(rows) != self._count:
            self._seen = 0  # they are other rows now, of another width
        self._size, self._count = size, len(rows)
        self._first = max(min(self._first, len(rows) - size), 0)
        return rows[self._first : self._first + size]

    def was_drawn(self) -> None:
        if self._first <= self._seen:  # else some were skipped
            self._seen = max(self._seen, self._first + self._size)
        self.was_all_seen = self.was_all_seen or self._seen >= self._count

    def note_all_seen(self) -> None:
        """Note that all rows were printed, with no page of them."""
        self.was_all_seen = True

    def reveal(self, rows: range, size: int) -> None:
        """Let some rows be among those that are shown, the first of them where there is no room for all."""
        self._first = min(max(self._first, rows.stop - size), rows.start)

    def row_of(self, index: int) -> int | None:
        """Return the place of a row among those that are shown; None where it is hidden."""
        return index - self._first if self._first <= index < self._first + self._size else None

    def turn(self, key: str) -> None:
        """Show what comes next with `pagedown`, or what came before; one row stays, so that none is missed."""
        step = max(self._size - 1, 1)
        self.scroll(step if key == "pagedown" else -step)

    def scroll(self, rows: int) -> None:
        """Show what comes that many rows later, or earlier where it is negative."""
        self._first = max(self._first + rows, 0)

    @property
    def is_cut(self) -> bool:
        return self._count > self._size

    def note(self, *, is_folded: bool) -> str:
        """Return what is not shown, and the keys for it."""
        last = self._first + self._size
        if is_folded and last < self._count:
            return f"… {self._count - last} more lines: ctrl+o shows them"
        return f"lines {self._first + 1}-{last} of {self._count}: PgDn, PgUp"


QUIET_S = 0.4
"""Time without a key before one counts for what is on the screen; a fast typist strikes every 0.15 s."""


class Quiet:
    """The time since something is on the screen and nothing was typed; `clock` returns seconds that only ever grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None
        """None: it is not on the screen."""

    def begin(self) -> None:
        """It is on the screen; it may have been before."""
        if self._since is None:
            self._since = self._clock()

    def restart(self) -> None:
        if self._since is not None:
            self._since = self._clock()

    def end(self) -> None:
        self._since = None

    def is_short_of(self, seconds: float) -> bool:
        """Return whether it is on the screen, and not that long yet without a key."""
        return self._since is not None and not self.has_lasted(seconds)

    def has_lasted(self, seconds: float) -> bool:
        """Return whether it has been on the screen that long without a key."""
        return self._since is not None and self._clock() - self._since >= seconds


def is_letter(key: str) -> bool:
    """Return whether a key is what it types, and not the name of one that does something."""
    return len(key) == 1 and key.isprintable()


class EarlyLetter:
    """Holds one letter, as often as it was pressed before a dialog takes keys: an answer, or the first of a text.

    It answers nothing, and no letter of a text is lost. The next key tells what it was: the same letter again is an
    answer, another one shows that both are text, and any other key means that it was nothing.
    """

    def __init__(self) -> None:
        self._held = ""

    @property
    def letter(self) -> str:
        """The one that is held; empty where none is."""
        return self._held[:1]

    def hold(self, key: str) -> str:
        """Hold a letter; return what is text after all, since another one came before."""
        held = self._held
        text = self.let_go(key)
        if not text:
            self._held = held + key
        return text

    def let_go(self, key: str) -> str:
        """Hold nothing any more, since a key comes; return what is text after all, that key included."""
        held = self.take()
        return held + key if held and is_letter(key) and key != held[0] else ""

    def take(self) -> str:
        held, self._held = self._held, ""
        return held


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
