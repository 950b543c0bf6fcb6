"""Texts of others, made fit for the rows of a dialog."""

import re

from panpan.faces.terminal.rendering.cells import RESET
from panpan.system.text.terminal_text import clean_for_terminal

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_TAB = " " * 4


def prose(text: str) -> str:
    """Return a text of several lines without anything that drives a terminal."""
    return clean_for_terminal(text).replace("\t", _TAB)


def on_one_line(text: str) -> str:
    """Return a text without anything that drives a terminal, on one line."""
    return " ".join(clean_for_terminal(text).split())


def coloured_lines(line: str) -> list[str]:
    """Return a coloured line with nothing but its colours to drive a terminal; as several where it has breaks."""
    pieces = [piece if _COLOUR.fullmatch(piece) else prose(piece) for piece in _COLOUR.split(line)]
    lines = "".join(pieces).split("\n")
    has_colour = len(pieces) > 1
    return [f"{part}{RESET}" if has_colour and not part.endswith(RESET) else part for part in lines]
