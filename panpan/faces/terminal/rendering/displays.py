"""The shapes of `types/display.py` as rows of a terminal."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from panpan.faces.terminal.rendering.cells import cell_width, cut, padded, wrapped
from panpan.faces.terminal.rendering.diff import diff_lines
from panpan.faces.terminal.rendering.text_rows import LEAST_WIDTH, markdown_rows, plain_rows
from panpan.faces.terminal.screen.canvas import Scrollback
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.display import (
    ChecklistDisplay,
    ChecklistItem,
    DiffDisplay,
    Display,
    ItemStatus,
    PlanDisplay,
    Span,
    SummaryDisplay,
    TableDisplay,
    TextDisplay,
)
from panpan.types.role import Role

_GAP = "  "
_TAB = 4
_LEAST_SECOND = 24
"""Cells that the second of two columns needs to stand beside the first."""


def show_displays(scrollback: Scrollback, displays: Sequence[Display]) -> None:
    """Show shapes below each other, as a command wants them shown."""
    width = max(scrollback.width, LEAST_WIDTH)
    for display in displays:
        rows = display_rows(display, width, scrollback.theme)
        is_indented = isinstance(display, ChecklistDisplay)
        scrollback.show(*(f"{_GAP}{row}" if is_indented else row for row in rows))


def display_rows(display: Display, width: int, theme: Theme) -> list[str]:
    """Return the rows of a shape.

    Args:
        display: The shape.
        width: Cells of a row, 8 or more.
        theme: How it looks.
    """
    match display:
        case TextDisplay(spans=spans):
            return _text_rows(spans, width, theme)
        case TableDisplay(rows=rows, header=header):
            return _table_rows(rows, header, width, theme)
        case ChecklistDisplay(todos=items):
            return checklist_lines(items, width - len(_GAP), theme)
        case DiffDisplay(files=files, notes=notes):
            told = [theme.paint("bad", row) for note in notes for row in wrapped(clean_line(note), width)]
            return [*(row for file in files for row in diff_lines(file, width, theme)), *told]
        case SummaryDisplay(text=text):
            return wrapped(clean_line(text), width)
        case PlanDisplay(text=text, summary=summary):
            return [*wrapped(clean_line(summary), width), "", *markdown_rows(text, width, theme)]
        case _:
            assert_never(display)


def _text_rows(spans: Sequence[Span], width: int, theme: Theme) -> list[str]:
    if len(spans) == 1:
        rows, role = plain_rows(spans[0].text, width), spans[0].role
        return [theme.paint(role, row) for row in rows] if role else rows
    return wrapped("".join(_painted(span, theme) for span in spans), width)


def _painted(span: Span, theme: Theme) -> str:
    text = clean_for_terminal(span.text if theme.has_hues else span.without_hues or span.text).expandtabs(_TAB)
    return theme.paint(span.role, text) if span.role else text


def _table_rows(rows: Sequence[Sequence[str]], header: Sequence[str], width: int, theme: Theme) -> list[str]:
    if not header and all(len(row) == 2 for row in rows):
        return _columns([(name, text) for name, text in rows], width, theme)
    from panpan.faces.terminal.rendering.leaf_blocks import body_rows, columns_of, header_rows

    cells = [[clean_line(cell) for cell in row] for row in rows]
    names = [theme.paint("strong", clean_line(name)) for name in header] or [""] * max(map(len, cells), default=0)
    columns = columns_of(names, cells, ["left"] * len(names), width)
    above = header_rows(columns, theme) if header else []
    return [*above, *(line for row in cells for line in body_rows(row, columns, width))]


def _columns(pairs: Sequence[tuple[str, str]], width: int, theme: Theme) -> list[str]:
    """Return rows of two columns, the first in colour; where there is no room, the second stands below it."""
    pairs = [(clean_line(name), text) for name, text in pairs]
    first = max((cell_width(name) for name, _ in pairs), default=0)
    is_beside = width - first - 2 * len(_GAP) >= _LEAST_SECOND
    indent = first + 2 * len(_GAP) if is_beside else 2 * len(_GAP)
    rows = []
    for name, text in pairs:
        painted = theme.paint("accent", cut(name, width - len(_GAP)))
        second = plain_rows(text, width - indent)
        if is_beside:
            head, *second = second
            rows.append(f"{_GAP}{padded(painted, first)}{_GAP}{head}" if head else f"{_GAP}{painted}")
        else:
            rows.append(f"{_GAP}{painted}")
        rows += [f"{' ' * indent}{row}" for row in second]
    return rows


_MARKS: Mapping[ItemStatus, tuple[str, Role | None]] = {
    "pending": ("☐", None),
    "in_progress": ("◐", "strong"),
    "completed": ("☑", "dim"),
}


def checklist_lines(todos: Sequence[ChecklistItem], width: int, theme: Theme) -> list[str]:
    """Return a checklist, with all of each todo.

    Args:
        todos: The list; what is being done is shown as `active_form`.
        width: Cells of a row, 4 or more.
        theme: How it looks.
    """
    rows: list[str] = []
    for todo in todos:
        mark, role = _MARKS[todo.status]
        for index, row in enumerate(wrapped(_words(todo), width - 2)):
            row = f"{'  ' if index else f'{mark} '}{row}".rstrip(" ")
            rows.append(theme.paint(role, row) if role else row)
    return rows


def short_checklist_lines(todos: Sequence[ChecklistItem], most: int, width: int, theme: Theme) -> list[str]:
    """Return a checklist of at most `most` rows, a row a todo: what is being done and around it; others are counted.

    Args:
        todos: The list.
        most: Rows, 1 or more.
        width: Cells of a row, 4 or more.
        theme: How it looks.
    """
    if len(todos) <= most:
        shown, left_out = todos, ""
    else:
        begin = next((place for place, todo in enumerate(todos) if todo.status == "in_progress"), None)
        if begin is None:
            begin = next((place for place, todo in enumerate(todos) if todo.status == "pending"), len(todos))
        begin = max(min(begin - (most > 2), len(todos) - most + 1), 0)
        shown = todos[begin : begin + most - 1]
        left_out = _left_out([*todos[:begin], *todos[begin + most - 1 :]])
    rows: list[str] = []
    for todo in shown:
        mark, role = _MARKS[todo.status]
        row = cut(f"{mark} {_words(todo)}", width)
        rows.append(theme.paint(role, row) if role else row)
    return [*rows, theme.paint("dim", cut(left_out, width))] if left_out else rows


def _words(todo: ChecklistItem) -> str:
    text = todo.active_form if todo.status == "in_progress" else todo.content
    return " ".join(clean_for_terminal(text).split())


def _left_out(todos: Sequence[ChecklistItem]) -> str:
    """Return the row that counts what is not shown."""
    done = sum(todo.status == "completed" for todo in todos)
    parts = [f"{done} done"] if done else []
    parts += [f"{len(todos) - done} to do"] if len(todos) > done else []
    return f"… and {', '.join(parts)}"
