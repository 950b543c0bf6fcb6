"""Finding the column of a symbol: models know the line and the name, and count columns badly."""

import re
from collections.abc import Sequence

from panpan.errors import ToolError

_MOST_LINES = 8


def find_symbol(lines: Sequence[str], symbol: str, line: int | None, shown: str) -> tuple[int, int]:
    """Return the line and column of a symbol, which has to stand there as a word of its own.

    Args:
        lines: Of the file, without their breaks.
        symbol: A name; of one with dots, such as `module.name`, the last part is meant.
        line: From 1; None: the first line that has it.
        shown: The file, for messages.

    Returns:
        The line, from 1, and how many characters of it come before the symbol.

    Raises:
        ToolError: It is not there; the text says where it is.
    """
    whole = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    found = {number: match for number, text in enumerate(lines, 1) if (match := whole.search(text))}
    at = next(iter(found), None) if line is None else line
    match = found.get(at) if at is not None else None
    if at is None or match is None:
        raise ToolError(_missing(symbol, line, shown, list(found), len(lines)))
    last = re.search(r"\w+\W*$", symbol)
    return at, match.start() + (last.start() if last else 0)


def _missing(symbol: str, line: int | None, shown: str, found: Sequence[int], count: int) -> str:
    if not found:
        return f"{symbol} does not stand in {shown} as a whole word; Read the file, or find the symbol with Grep"
    if line is not None and line > count:
        there = f"{shown} has {count} lines, and no line {line}"
    else:
        there = f"line {line} of {shown} has no {symbol}"
    more = ", …" if len(found) > _MOST_LINES else ""
    return f"{there}; it stands in line {', '.join(map(str, found[:_MOST_LINES]))}{more}"
