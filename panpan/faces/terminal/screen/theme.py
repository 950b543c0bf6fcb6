"""Colours by what they mean, for a light and a dark terminal, in high contrast, and for none at all.

Everything that the terminal shows is a line of text with SGR sequences in it, made by `Theme.paint`; nothing else in
`faces/` writes an escape sequence for a colour. Only the 16 colours of the terminal's own palette are used: the user
chose them to be readable.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.role import Role

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

    def paint(self, role: Role, text: str) -> str:
        """Return one line of text, which must be harmless already, in the colour of its role."""
        code = self._codes.get(role, "")
        return f"\x1b[{code}m{text}{_RESET}" if code and text else text
