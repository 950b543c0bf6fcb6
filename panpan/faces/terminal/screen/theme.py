"""Colours by what they mean, for light and dark terminals, and which of them fit the one at hand."""

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
from panpan.types.role import Role

# Colours by what they mean, for a light and a dark terminal, in high contrast, and for none at all.
#
# Everything that the terminal shows is a line of text with SGR sequences in it, made by `Theme.paint`; nothing else in
# `faces/` writes an escape sequence for a colour. Only the 16 colours of the terminal's own palette are used, which the
# user chose to be readable, and for grounds six of the 256 that nearly every terminal has.

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
"""By the colours that a definition may name."""

_RESET = "\x1b[0m"

_THEMES: Sequence[ThemeName] = ("dark", "light", "high-contrast", "plain")
# On white, yellow and cyan cannot be read. NO_COLOR (https://no-color.org) is about colour: bold and dim may stay.
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
"""The look of each role in each of `_THEMES`."""
_CODES_OF: Mapping[ThemeName, Mapping[Role, str]] = {
    name: {role: codes[column] for role, codes in _CODES.items()} for column, name in enumerate(_THEMES)
}


@dataclass(frozen=True, slots=True)
class Theme:
    """A look; `plain` has no colours, and without sequences nothing is painted, as for a dumb terminal."""

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
        """Return one line of text, which must be harmless already, in the colour of its role, on that of another."""
        codes = _CODES_OF[self.name] if self.has_sequences else {}
        code = ";".join(filter(None, (codes.get(one, "") for one in (on, role) if one)))
        return f"\x1b[{code}m{text}{_RESET}" if code and text else text


# Which theme fits the terminal: found from what it says of itself, or asked of it.
#
# The rule: a question to the terminal loses nothing that is typed meanwhile, and leaves the terminal as it was.

_ASK_BACKGROUND = b"\x1b]11;?\x1b\\"
"""OSC 11 (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html)."""
_ASK_KIND = b"\x1b[c"
"""Every terminal answers this one, and after the first: so nobody waits for a terminal that does not know OSC 11."""
_BACKGROUND = re.compile(rb"\x1b\]11;([^\x07\x1b]*)(?:\x07|\x1b\\)")
_KIND = re.compile(rb"\x1b\[\?[0-9;]*c")
_COLOUR = re.compile(r"rgba?:([0-9a-f]{1,4})/([0-9a-f]{1,4})/([0-9a-f]{1,4})(?:/[0-9a-f]{1,4})?", re.IGNORECASE)
_DUMB = frozenset({"dumb", "unknown"})
_LIGHT_COLOURS = frozenset({7, *range(9, 16)})
"""Of the 16 of `COLORFGBG`: white, and the bright ones but black."""
_MAX_ANSWER_BYTES = 4_096


def choose_theme(setting: ThemeSetting, env: Mapping[str, str], background: str | None) -> Theme:
    """Return the theme to begin with; only a dumb terminal overrules the setting.

    `background` is the terminal's answer when it was asked for it.
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
    """Return whether a colour such as `rgb:ffff/ffff/ffff` is light; None where it is no colour."""
    match = _COLOUR.fullmatch(colour.strip())
    if match is None:
        return None
    red, green, blue = (int(part, 16) / int("f" * len(part), 16) for part in match.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5  # ITU-R BT.709


def is_light_by_variable(value: str) -> bool | None:
    """Return whether `COLORFGBG`, such as `0;default;15`, says that the background is light; None: it does not say."""
    number = value.rpartition(";")[2]
    if not number.isascii() or not number.isdigit() or int(number) > 15:
        return None
    return int(number) in _LIGHT_COLOURS


class Answer(NamedTuple):
    """Answer of a terminal."""

    background: str | None
    """Such as `rgb:1e1e/1e1e/1e1e`; None where it did not say."""
    typed: str
    """All that was no answer: keys that were pressed meanwhile, as they are read from a terminal."""


def read_answer(data: bytes) -> Answer:
    """Tell the answers of a terminal from what was typed."""
    background = _BACKGROUND.search(data)
    typed = _KIND.sub(b"", _BACKGROUND.sub(b"", data, count=1), count=1)
    colour = background[1].decode("ascii", "replace") if background else None
    return Answer(colour, typed.decode("utf-8", "surrogateescape"))


def query_background(fd_in: int, fd_out: int, timeout_s: float) -> Answer:
    """Ask the terminal for the colour of its background; blocks for `timeout_s` at most.

    Where this is no terminal, or not ours to ask, nothing is written. What was typed meanwhile is in the answer, and is
    to be handed to whoever reads keys.
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
        pass  # the terminal went away; whoever reads keys will notice
    return data


@contextmanager
def _raw_mode(fd: int) -> Iterator[None]:
    before = termios.tcgetattr(fd)
    tty.setraw(fd, termios.TCSANOW)  # not after a flush, which would drop what is typed
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
