"""Rows of text for a question about a call, on every face.

The rule: arguments are shown exactly, with invisible characters spelled out, since a person has to judge them. Each
line begins with a bar, and each continuation row with a broken bar. So no text can pass for two lines, for another
argument, or for a part of the question.
"""

import json
from collections.abc import Mapping
from typing import Any

from panpan.faces.terminal.rendering.cells import break_line, cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.hub.permission_answers import exact_line
from panpan.system.text.cell_width import cell_width
from panpan.types.permission import PermissionQuestion

_ASKS = " asks:"


def head_rows(question: PermissionQuestion, width: int, theme: Theme) -> list[str]:
    """Return the whole question, preceded by a row with the name of the subagent if one asks."""
    head, agent = exact_line(question.head), exact_line(question.agent)
    if not agent:
        return [theme.paint("question", row) for row in break_line(f"? {head}", width)]
    who = cut(f"? {cut(agent, max(width - len(_ASKS) - 2, 1))}{_ASKS}", width)
    return [theme.paint("question", row) for row in (who, *(f"  {row}" for row in break_line(head, width - 2)))]


def argument_rows(arguments: Mapping[str, Any], width: int, theme: Theme, *, main: str = "") -> list[str]:
    """Return the arguments of a call as rows of at most `width` cells.

    Args:
        arguments: Values by name.
        width: Cells of a row.
        theme: Colours.
        main: Name of the argument that comes first, without its name, if its value is a text.
    """
    if not arguments:
        return [theme.paint("dim", "(no arguments)")]
    value = arguments.get(main)
    rows = _text_rows(value, width, theme) if isinstance(value, str) else []
    others = {name: value for name, value in arguments.items() if not rows or name != main}
    return [*rows, *(row for name, value in others.items() for row in _rows_of(exact_line(name), value, width, theme))]


def _rows_of(name: str, value: Any, width: int, theme: Theme) -> list[str]:
    text = value if isinstance(value, str) else _json_of(value)
    if "\n" not in text and cell_width(f"{name}: {exact_line(text)}") <= width:
        return [f"{theme.paint('dim', f'{name}:')} {exact_line(text)}"]
    if not isinstance(value, str):
        text = _json_of(value, indent=2)
    return [*(theme.paint("dim", row) for row in break_line(f"{name}:", width)), *_text_rows(text, width, theme)]


def _text_rows(text: str, width: int, theme: Theme) -> list[str]:
    rows: list[str] = []
    for line in text.split("\n"):
        first, *more = break_line(exact_line(line), width - 2)
        rows += [f"{theme.paint('dim', '│')} {first}", *(f"{theme.paint('dim', '┊')} {row}" for row in more)]
    return rows


def _json_of(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
