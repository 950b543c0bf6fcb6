"""Columns of a line as servers count them: UTF-8 bytes, UTF-16 units or characters (LSP 3.17, `positionEncodings`).

The rule: a column that lies inside of a character means its beginning, and one behind the line means its end, as the
protocol says.
"""

import re
from typing import Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_LINE_BREAK = re.compile(r"\r\n|\n|\r")
"""The only three that the protocol knows; a form feed or U+2028 stands in a line."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their breaks; a text that ends with one has an empty line behind it."""
    return _LINE_BREAK.split(text)


def line_starts(text: str) -> list[int]:
    """Return at which character of the text each of its lines begins."""
    return [0, *(found.end() for found in _LINE_BREAK.finditer(text))]


def units(text: str, encoding: Encoding) -> int:
    """Return how long a text is in the units of a server."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def characters(line: str, column: int, encoding: Encoding) -> int:
    """Return how many characters of `line` lie before a column of a server.

    Args:
        line: The line without its break.
        column: In the units of the encoding; at least 0.
        encoding: The server's.
    """
    if line.isascii() or encoding == "utf-32":
        return min(column, len(line))
    left = column
    for at, character in enumerate(line):
        left -= units(character, encoding)
        if left < 0:
            return at
    return len(line)
