"""Splits output to a terminal into text and control functions (ECMA-48)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["C0", "C1", "ESC", "CSI", "OSC", "DCS", "SOS", "PM", "APC"]

_STRINGS: dict[str, Kind] = {"]": "OSC", "P": "DCS", "X": "SOS", "^": "PM", "_": "APC"}
_STRINGS_8_BIT: dict[str, Kind] = {"\x9d": "OSC", "\x90": "DCS", "\x98": "SOS", "\x9e": "PM", "\x9f": "APC"}

_TOKEN = re.compile(
    r"""
    (?P<text>[^\x00-\x1f\x7f-\x9f]+)
  | (?:\x1b\[|\x9b)(?P<csi>[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e])
  | (?:\x1b(?P<string>[\]PX^_])|(?P<string8>[\x90\x98\x9d\x9e\x9f]))(?P<content>[^\x07\x1b\x9c]*)(?:\x07|\x1b\\|\x9c)
  | \x1b(?P<escape>[\x20-\x2f]+[\x30-\x7e]|[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e])
  | (?P<c0>[\x00-\x1a\x1c-\x1f\x7f])
  | (?P<c1>[\x80-\x8f\x91-\x97\x99\x9a\x9c])
    """,
    re.VERBOSE,
)
_BROKEN_OFF = re.compile(
    r"\x1b(?=\x1b)|(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*(?=[^\x20-\x7e])|(?:\x1b[\]PX^_])[^\x07\x1b\x9c]*(?=\x1b[^\\])"
)
"""An interrupted sequence, which terminals drop."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control function, an instruction to the terminal.

    `text` is the part after the introducer: `2J` of a CSI, `0;title` of an OSC, the character itself of a C0.
    """

    kind: Kind
    text: str


class Splitter:
    """Splits a stream that comes in pieces; an incomplete sequence waits for its rest."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> Iterator[str | Control]:
        """Yield the text and the controls that `piece` completes."""
        pending = self._rest + piece
        position = 0
        while position < len(pending):
            match = _TOKEN.match(pending, position)
            if match is not None:
                position = match.end()
                yield _item(match)
            elif (broken := _BROKEN_OFF.match(pending, position)) is not None:
                position = broken.end()
            else:
                break
        self._rest = pending[position:]


def _item(match: re.Match[str]) -> str | Control:
    found = match.group
    match match.lastgroup:
        case "text":
            return found("text")
        case "csi":
            return Control("CSI", found("csi"))
        case "content":
            kind = _STRINGS[found("string")] if found("string") else _STRINGS_8_BIT[found("string8")]
            return Control(kind, found("content"))
        case "escape":
            return Control("ESC", found("escape"))
        case "c0":
            return Control("C0", found("c0"))
        case _:
            return Control("C1", found("c1"))
