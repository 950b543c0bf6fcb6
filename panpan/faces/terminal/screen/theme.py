"""Colours by role, for light and dark terminals, and the choice of a theme for the terminal."""

import os
import re
import select
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

from panpan.config.ui_look import ThemeSetting
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.role import Role

# Themes: dark, light, high contrast, and without colours.
#
# The terminal shows lines of text with SGR sequences from `Theme.paint`; nothing else in `faces/` writes an escape
# sequence for a colour. Only the 16 colours of the terminal's own palette are used, which the user chose to be
# readable, and for backgrounds six of the 256 that nearly every terminal has.

ThemeName: TypeAlias = Literal["light", "dark", "high-contrast", "plain"]

AGENT_ROLES: Mapping[str, Role] = {
    "red": "agent_red",
    "blue": "agent_blue",
    "green": "agent_green",
    "yellow": "agent_yellow",
    "purple": "agent_purple",
    "orange": "agent_orange",
    "pink": "agent_pink",
    "cyan": "agent_cyan",
}
"""Roles by the colours that the definition of a subagent may name."""

_RESET = "\x1b[0m"

_THEMES: Sequence[ThemeName] = ("dark", "light", "high-contrast", "plain")
# Yellow and cyan cannot be read on white. NO_COLOR (https://no-color.org) is about colour: bold and dim may stay.
_CODES: Mapping[Role, Sequence[str]] = {
    "accent": ("36", "34", "1", ""),
    "dim": ("2", "2", "", "2"),
    "strong": ("1", "1", "1", "1"),
    "emphasis": ("3", "3", "3", ""),
    "struck": ("9", "9", "9", ""),
    "heading": ("1;36", "1;34", "1;4", "1"),
    "link": ("4", "4", "4", ""),
    "good": ("32", "32", "1;32", ""),
    "bad": ("31", "31", "1;4;31", "1"),
    "warn": ("33", "35", "1;4", "1"),
    "added": ("32", "32", "1;32", ""),
    "removed": ("31", "31", "1;31", ""),
    "added_word": ("7;32", "7;32", "1;7;32", ""),
    "removed_word": ("7;31", "7;31", "1;7;31", ""),
    "added_row": ("48;5;22", "48;5;194", "", ""),
    "removed_row": ("48;5;52", "48;5;224", "", ""),
    "added_row_word": ("48;5;28", "48;5;157", "", ""),
    "removed_row_word": ("48;5;88", "48;5;217", "", ""),
    "hunk": ("36", "34", "1", ""),
    "question": ("33", "35", "1;7", "1"),
    "plan": ("35", "35", "1;7", "1"),
    "user": ("1;36", "1;34", "1", "1"),
    "user_row": ("48;5;237", "48;5;254", "7", ""),
    "code": ("36", "34", "1", ""),
    "keyword": ("35", "35", "1", ""),
    "name": ("33", "1", "4", ""),
    "string": ("32", "32", "", ""),
    "number": ("36", "34", "", ""),
    "comment": ("2", "2", "", ""),
    "agent_red": ("31", "31", "1;31", ""),
    "agent_blue": ("94", "34", "1", ""),
    "agent_green": ("32", "32", "1;32", ""),
    "agent_yellow": ("93", "1", "1", ""),
    "agent_purple": ("35", "35", "1", ""),
    "agent_orange": ("33", "91", "1", ""),
    "agent_pink": ("95", "95", "1", ""),
    "agent_cyan": ("36", "1;34", "1", ""),
}
"""SGR codes of each role in each of `_THEMES`."""
_CODES_OF: Mapping[ThemeName, Mapping[Role, str]] = {
    name: {role: codes[column] for role, codes in _CODES.items()} for column, name in enumerate(_THEMES)
}


@dataclass(frozen=True, slots=True)
class Theme:
    """Set of colours; `plain` has none, and without sequences, as on a dumb terminal, nothing is painted."""

    name: ThemeName = "dark"
    has_sequences: bool = True

    @property
    def has_colour(self) -> bool:
        """True if anything but bold and dim is used."""
        return self.name != "plain" and self.has_sequences

    @property
    def has_hues(self) -> bool:
        """True if every role has a colour of its own."""
        return self.name in ("light", "dark") and self.has_sequences

    def paint(self, role: Role | None, text: str, *, on: Role | None = None) -> str:
        """Return one line of cleaned text in the colour of its role, on the background of another role."""
        codes = _CODES_OF[self.name] if self.has_sequences else {}
        code = ";".join(filter(None, (codes.get(one, "") for one in (on, role) if one)))
        return f"\x1b[{code}m{text}{_RESET}" if code and text else text


# Choice of a theme, from environment variables and a query to the terminal.
#
# The rule: a query loses no keys that are typed meanwhile, and leaves the terminal as it was.

_ASK_BACKGROUND = b"\x1b]11;?\x1b\\"
"""Query for the background colour: OSC 11 (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html)."""
_ASK_KIND = b"\x1b[c"
"""Query that every terminal answers, in order: so there is no wait for a terminal that does not know OSC 11."""
_BACKGROUND = compile_late(rb"\x1b\]11;([^\x07\x1b]*)(?:\x07|\x1b\\)")
_KIND = compile_late(rb"\x1b\[\?[0-9;]*c")
_COLOUR = compile_late(r"rgba?:([0-9a-f]{1,4})/([0-9a-f]{1,4})/([0-9a-f]{1,4})(?:/[0-9a-f]{1,4})?", re.IGNORECASE)
_DUMB = frozenset({"dumb", "unknown"})
_LIGHT_COLOURS = frozenset({7, *range(9, 16)})
"""Light colours of the 16 in `COLORFGBG`: white, and the bright ones except bright black."""
_MAX_ANSWER_BYTES = 4_096


def choose_theme(setting: ThemeSetting, env: Mapping[str, str], background: str | None) -> Theme:
    """Return the theme at the start; only a dumb terminal overrides the setting.

    `background` is the terminal's answer to the query for its background colour.
    """
    if env.get("TERM", "") in _DUMB:
        return Theme("plain", has_sequences=False)
    if setting != "auto":
        return Theme(setting)
    if env.get("NO_COLOR"):
        return Theme("plain")
    is_light = is_light_colour(background) if background else None
    if is_light is None:
        is_light = is_light_by_variable(env.get("COLORFGBG", ""))
    return Theme("light" if is_light else "dark")


def is_light_colour(colour: str) -> bool | None:
    """Return True if a colour such as `rgb:ffff/ffff/ffff` is light; None if it is not a colour."""
    match = _COLOUR.fullmatch(colour.strip())
    if match is None:
        return None
    red, green, blue = (int(part, 16) / int("f" * len(part), 16) for part in match.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5  # ITU-R BT.709


def is_light_by_variable(value: str) -> bool | None:
    """Return True if the background in `COLORFGBG`, such as `0;default;15`, is light; None if there is none in it."""
    number = value.rpartition(";")[2]
    if not number.isascii() or not number.isdigit() or int(number) > 15:
        return None
    return int(number) in _LIGHT_COLOURS


class Answer(NamedTuple):
    """Answer of a terminal to the queries."""

    background: str | None
    """Colour such as `rgb:1e1e/1e1e/1e1e`; None if there was no answer."""
    typed: str
    """Input that was no answer: keys that were pressed meanwhile, as read from a terminal."""


def read_answer(data: bytes) -> Answer:
    """Separate the answers of a terminal from typed keys."""
    background = _BACKGROUND.search(data)
    typed = _KIND.sub(b"", _BACKGROUND.sub(b"", data, count=1), count=1)
    colour = background[1].decode("ascii", "replace") if background else None
    return Answer(colour, typed.decode("utf-8", "surrogateescape"))


def query_background(fd_in: int, fd_out: int, timeout_s: float) -> Answer:
    """Query the terminal for its background colour; blocks for at most `timeout_s`.

    Nothing is written if this is no terminal, or panpan is in the background. Keys typed meanwhile are in the answer,
    and have to be passed on to the reader of keys.
    """
    if not _may_ask(fd_in, fd_out):
        return Answer(None, "")
    with _raw_mode(fd_in):
        return read_answer(_asked(fd_in, fd_out, timeout_s))


def _may_ask(fd_in: int, fd_out: int) -> bool:
    try:
        return os.isatty(fd_in) and os.isatty(fd_out) and os.tcgetpgrp(fd_in) == os.getpgrp()
    except OSError:
        return False


def _asked(fd_in: int, fd_out: int, timeout_s: float) -> bytes:
    data = b""
    deadline = monotonic() + timeout_s
    try:
        os.write(fd_out, _ASK_BACKGROUND + _ASK_KIND)
        while not _KIND.search(data) and len(data) < _MAX_ANSWER_BYTES:
            ready, _, _ = select.select([fd_in], [], [], max(deadline - monotonic(), 0))
            if not ready or not (read := os.read(fd_in, 1_024)):
                break
            data += read
    except OSError:
        pass  # the terminal is gone; the reader of keys will notice
    return data


@contextmanager
def _raw_mode(fd: int) -> Iterator[None]:
    before = termios.tcgetattr(fd)
    tty.setraw(fd, termios.TCSANOW)  # TCSANOW: a flush would drop typed keys
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
