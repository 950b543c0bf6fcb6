"""What a person has to judge, shown exactly: every argument, with what cannot be seen spelled out.

A bar stands before each line, a broken one where a line goes on in the next row: no text can pass for two lines, for
another argument, or for a part of the dialog.
"""

import json
from collections.abc import Mapping
from typing import Any

from panpan.faces.terminal.rendering.cells import broken, cell_width
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import spelled_out

_TAB = "<U+0009>"
_LINE_FEED = "<U+000A>"


def exact_line(text: str) -> str:
    """Return `text` on one line, with every character spelled out that could not be seen."""
    return spelled_out(text).replace("\t", _TAB).replace("\n", _LINE_FEED)


def argument_rows(arguments: Mapping[str, Any], width: int, theme: Theme) -> list[str]:
    """Return the arguments of a call as rows of at most `width` cells."""
    if not arguments:
        return [theme.paint("dim", "(no arguments)")]
    return [row for name, value in arguments.items() for row in _rows_of(exact_line(name), value, width, theme)]


def _rows_of(name: str, value: Any, width: int, theme: Theme) -> list[str]:
    text = value if isinstance(value, str) else _json_of(value)
    if "\n" not in text and cell_width(f"{name}: {exact_line(text)}") <= width:
        return [f"{theme.paint('dim', f'{name}:')} {exact_line(text)}"]
    if not isinstance(value, str):
        text = _json_of(value, indent=2)
    lines = [exact_line(line) for line in text.split("\n")]
    rows = [theme.paint("dim", row) for row in broken(f"{name}:", width)]
    for line in lines:
        first, *more = broken(line, width - 2)
        rows += [f"{theme.paint('dim', '│')} {first}", *(f"{theme.paint('dim', '┊')} {row}" for row in more)]
    return rows


def _json_of(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
