"""Colours by what they mean, for light and dark terminals, and which of them fit the one at hand."""

import os
import re
import select
import termios
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from time import monotonic
from typing import Literal, NamedTuple, TypeAlias

from panpan.config.ui_look import ThemeSetting
from panpan.types.dataclass import dataclass
from panpan.types.role import Role

# Colours by what they mean, for a light and a dark terminal, in high contrast, and for none at all.
#
# Everything that the terminal shows is a line of text with SGR sequences in it, made by `Theme.paint`; nothing else in
# `faces/` writes an escape sequence for a colour. Only the 16 colours of the terminal's own palette are used: the user
# chose them to be readable.

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

_DARK: Mapping[Role, str] = {
    "accent": "36",
    "dim": "2",
    "strong": "1",
    "emphasis": "3",
    "struck": "9",
    "heading": "1;36",
    "link": "4",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "added": "32",
    "removed": "31",
    "added_word": "7;32",
    "removed_word": "7;31",
    "hunk": "36",
    "question": "33",
    "plan": "35",
    "user": "1;36",
    "code": "36",
    "keyword": "35",
    "name": "33",
    "string": "32",
    "number": "36",
    "comment": "2",
    "agent_red": "31",
    "agent_blue": "94",
    "agent_green": "32",
    "agent_yellow": "93",
    "agent_purple": "35",
    "agent_orange": "33",
    "agent_pink": "95",
    "agent_cyan": "36",
}
# yellow and cyan cannot be read on white
_LIGHT: Mapping[Role, str] = {
    **_DARK,
    "accent": "34",
    "heading": "1;34",
    "warn": "35",
    "hunk": "34",
    "question": "35",
    "user": "1;34",
    "code": "34",
    "name": "1",
    "number": "34",
    "agent_blue": "34",
    "agent_yellow": "1",
    "agent_orange": "91",
    "agent_cyan": "1;34",
}
_HIGH_CONTRAST: Mapping[Role, str] = {
    **_DARK,
    "accent": "1",
    "dim": "",
    "heading": "1;4",
    "good": "1;32",
    "bad": "1;4;31",
    "warn": "1;4",
    "added": "1;32",
    "removed": "1;31",
    "added_word": "1;7;32",
    "removed_word": "1;7;31",
    "hunk": "1",
    "question": "1;7",
    "plan": "1;7",
    "user": "1;4",
    "code": "1",
    "keyword": "1",
    "name": "4",
    "string": "",
    "number": "",
    "comment": "",
    **dict.fromkeys(AGENT_ROLES.values(), "1"),
    "agent_red": "1;31",
    "agent_green": "1;32",
}
# NO_COLOR (https://no-color.org) is about colour: bold and dim may stay
_PLAIN: Mapping[Role, str] = {
    "dim": "2",
    "strong": "1",
    "heading": "1",
    "user": "1",
    "question": "1",
    "plan": "1",
    "warn": "1",
    "bad": "1",
}

_CODES: Mapping[ThemeName, Mapping[Role, str]] = {
    "dark": _DARK,
    "light": _LIGHT,
    "high-contrast": _HIGH_CONTRAST,
    "plain": _PLAIN,
}


@dataclass(frozen=True, slots=True)
class Theme:
    """How what is shown looks.

    Args:
        name: Which set of colours; `plain` has none.
        has_sequences: Whether anything is painted at all; a dumb terminal would print the sequences as text.
    """

    name: ThemeName = "dark"
    has_sequences: bool = True
    _codes: Mapping[Role, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codes", _CODES[self.name] if self.has_sequences else {})

    @property
    def has_colour(self) -> bool:
        """Whether anything but bold and dim is used."""
        return self.name != "plain" and self.has_sequences

    @property
    def has_hues(self) -> bool:
        """True if every role has a colour of its own."""
        return self.name in ("light", "dark") and self.has_sequences

    def paint(self, role: Role | None, text: str) -> str:
        """Return one line of text, which must be harmless already, in the colour of its role."""
        code = self._codes.get(role, "") if role else ""
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
    """Return the theme to begin with.

    Args:
        setting: What the user wants; only a dumb terminal overrules it.
        env: The environment: `TERM`, `NO_COLOR`, `COLORFGBG`.
        background: What the terminal answered when it was asked for its background.
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
    """What came from the terminal."""

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
