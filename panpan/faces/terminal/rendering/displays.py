"""The shapes of `types/display.py` as rows of a terminal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import assert_never

from panpan.faces.terminal.rendering.cells import (
    LEAST_WIDTH,
    Scrollback,
    broken,
    cell_width,
    cut,
    markdown_rows,
    padded,
    plain_rows,
    wrapped,
)
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import counts_text
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, spelled_out
from panpan.types.content import (
    ChecklistDisplay,
    ChecklistItem,
    DiffDisplay,
    Display,
    FileDiff,
    ItemStatus,
    PlanDisplay,
    Span,
    SummaryDisplay,
    TableDisplay,
    TextDisplay,
)
from panpan.types.dataclass import dataclass
from panpan.types.role import Role

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_WORD = re.compile(r"\w+|\s+|.")
_TAB = 4
_MAX_CHARS_TO_COMPARE = 300
"""Of a line; in a longer one no words are marked."""
_ALIKE = 0.4
"""Lines that have less in common are two lines, and no change of one."""
_ROOM_FOR_TEXT = 20
"""Cells; where line numbers would leave less, there are none."""


@dataclass(frozen=True, slots=True)
class _Line:
    sign: str
    """Blank, `-`, `+`, or `@` for the beginning of a hunk, or a backslash for a note."""
    text: str
    old: int | None = None
    new: int | None = None
    other: str | None = None
    """Its counterpart: the line that a removed one became, or that an added one was."""


def diff_lines(
    file: FileDiff,
    width: int,
    theme: Theme,
    max_lines: int | None = None,
    *,
    shows_controls: bool = False,
    names_file: bool = True,
) -> list[str]:
    """Return the rows of a diff, a heading first; long lines go on in the next row.

    Args:
        file: The change.
        width: Cells, 4 or more.
        theme: How it looks.
        max_lines: Most rows, 2 or more, heading and note included; None: all.
        shows_controls: True to spell out control and invisible characters, for a person who has to judge them.
        names_file: False where the path stands above already.
    """
    heading = _heading(file, theme, shows_controls=shows_controls, names_file=names_file)
    rows = broken(heading, width) if shows_controls else [cut(heading, width)]
    lines = _with_counterparts(list(_parsed(file.diff, shows_controls=shows_controls)))
    layout = _Layout(lines, width, theme)
    for index, line in enumerate(lines):
        added = layout.rows(line)
        room = len(rows) + len(added) if max_lines is None else max_lines - len(rows)
        is_last = index == len(lines) - 1
        if len(added) > room - (0 if is_last else 1):
            hidden = sum(line.sign != "@" for line in lines[index:])
            note = f"… +{hidden} line{'s' if hidden != 1 else ''}"
            return [*rows, *added[: room - 1], theme.paint("dim", cut(note, width))]
        rows += added
    return rows


def _heading(file: FileDiff, theme: Theme, *, shows_controls: bool, names_file: bool) -> str:
    path = theme.paint("strong", _harmless(file.path, shows_controls=shows_controls)) if names_file else ""
    mark = theme.paint("dim", "(new)" if file.is_new else "(deleted)" if file.is_deleted else "")
    return " ".join(filter(None, (path, mark, _counts(file, theme))))


def _counts(file: FileDiff, theme: Theme) -> str:
    if not file.added and not file.removed:
        return theme.paint("dim", counts_text(file))
    return f"{theme.paint('added', f'+{file.added}')} {theme.paint('removed', f'-{file.removed}')}"


def _harmless(text: str, *, shows_controls: bool) -> str:
    clean = spelled_out(text) if shows_controls else clean_for_terminal(text)
    return clean.replace("\n", "␊").expandtabs(_TAB)


def _parsed(diff: str, *, shows_controls: bool) -> Iterator[_Line]:
    source = diff.split("\n")
    changed = [text.endswith("\r") for text in source if text[:1] in ("+", "-")]
    returns = "␍" if any(changed) and not all(changed) else ""
    old = new = 0
    is_in_hunk = False
    for index, text in enumerate(source):
        if match := _HUNK.match(text):
            old, new, is_in_hunk = int(match[1]), int(match[2]), True
            if old > 1:  # else nothing was left out before it
                yield _Line("@", _harmless(match[3].strip(), shows_controls=shows_controls))
            continue
        if not is_in_hunk or (not text and index == len(source) - 1):
            continue  # the names of the files, which the heading has
        sign, content = text[:1] or " ", text[1:]
        if content.endswith("\r") and not shows_controls:
            content = content[:-1] + (returns if sign in "+-" else "")
        shown = _harmless(content, shows_controls=shows_controls)
        if sign not in " +-":
            yield _Line("\\", _harmless(text.removeprefix("\\ "), shows_controls=shows_controls))
            continue
        yield _Line(sign, shown, None if sign == "+" else old, None if sign == "-" else new)
        old, new = old + (sign != "+"), new + (sign != "-")


def _with_counterparts(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines, and of each removed one what it became, where as many were added as removed."""
    groups = [list(group) for _, group in groupby(lines, key=lambda line: line.sign)]
    for before, after in pairwise(groups):
        if before[0].sign == "-" and after[0].sign == "+" and len(before) == len(after):
            pairs = list(zip(before, after, strict=True))
            before[:] = [replace(one, other=other.text) for one, other in pairs]
            after[:] = [replace(other, other=one.text) for one, other in pairs]
    return [line for group in groups for line in group]


class _Layout:
    def __init__(self, lines: Sequence[_Line], width: int, theme: Theme) -> None:
        self._width = width
        self._theme = theme
        highest = max((number for line in lines for number in (line.old, line.new) if number is not None), default=0)
        digits = len(str(highest))
        self._digits = digits if width >= 2 * digits + 4 + _ROOM_FOR_TEXT else 0
        self._gutter = 2 * self._digits + 2 if self._digits else 0

    def rows(self, line: _Line) -> list[str]:
        match line.sign:
            case "@":
                return [self._theme.paint("hunk", cut(f"⋯ {line.text}".rstrip(), self._width))]
            case "\\":
                return [self._theme.paint("dim", cut(" " * self._gutter + line.text, self._width))]
            case "-":
                return self._numbered(line, "removed", "removed_word")
            case "+":
                return self._numbered(line, "added", "added_word")
            case _:
                return self._laid_out(line, " ", line.text)

    def _numbered(self, line: _Line, role: Role, word_role: Role) -> list[str]:
        parts = [(line.text, False)]
        if line.other is not None and self._theme.has_colour:
            parts = _changed_words(line.text, line.other)
        painted = "".join(self._theme.paint(word_role if is_changed else role, part) for part, is_changed in parts)
        return self._laid_out(line, self._theme.paint(role, line.sign), painted)

    def _laid_out(self, line: _Line, sign: str, text: str) -> list[str]:
        first, *others = broken(text, self._width - self._gutter - 2)
        gutter = ""
        if self._digits:
            old, new = ("" if number is None else str(number) for number in (line.old, line.new))
            gutter = self._theme.paint("dim", f"{old:>{self._digits}} {new:>{self._digits}}") + " "
        more = " " * self._gutter + self._theme.paint("dim", "·") + " "
        return [row.rstrip(" ") for row in (f"{gutter}{sign} {first}", *(more + other for other in others))]


def _changed_words(text: str, other: str) -> list[tuple[str, bool]]:
    """Return the parts of a line, and for each whether the other line lacks it."""
    if max(len(text), len(other)) > _MAX_CHARS_TO_COMPARE:
        return [(text, False)]
    words = _WORD.findall(text)
    blocks = SequenceMatcher(None, words, _WORD.findall(other), autojunk=False).get_matching_blocks()
    same = sum(len(word) for block in blocks for word in words[block.a : block.a + block.size])
    if same < _ALIKE * max(len(text), len(other)):
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    at = 0
    for block in blocks:
        parts.append(("".join(words[at : block.a]), True))
        parts.append(("".join(words[block.a : block.a + block.size]), False))
        at = block.a + block.size
    return [part for part in parts if part[0]]


_GAP = "  "
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
    """Return the rows of a shape; `width` is 8 cells or more."""
    match display:
        case TextDisplay(spans=spans):
            return _text_rows(spans, width, theme)
        case TableDisplay(rows=rows, header=header):
            return _table_rows(rows, header, width, theme)
        case ChecklistDisplay(todos=items):
            return checklist_lines(items, width - len(_GAP), theme)
        case DiffDisplay():
            return diff_rows(display, width, theme)
        case SummaryDisplay(text=text):
            return wrapped(clean_line(text), width)
        case PlanDisplay(text=text, summary=summary):
            return [*wrapped(clean_line(summary), width), "", *markdown_rows(text, width, theme)]
        case _:
            assert_never(display)


def diff_rows(
    diff: DiffDisplay, width: int, theme: Theme, max_lines: int | None = None, *, names_files: bool = True
) -> list[str]:
    """Return the rows of all files, as `diff_lines` does, and of the notes."""
    files = [diff_lines(file, width, theme, max_lines, names_file=names_files) for file in diff.files]
    notes = [theme.paint("bad", row) for note in diff.notes for row in wrapped(clean_line(note), width)]
    return [*(row for rows in files for row in rows), *notes]


def _text_rows(spans: Sequence[Span], width: int, theme: Theme) -> list[str]:
    if len(spans) == 1:
        return [theme.paint(spans[0].role, row) for row in plain_rows(spans[0].text, width)]
    texts = (span.text if theme.has_hues else span.without_hues or span.text for span in spans)
    clean = (clean_for_terminal(text).expandtabs(_TAB) for text in texts)
    return wrapped("".join(theme.paint(span.role, text) for span, text in zip(spans, clean, strict=True)), width)


def _table_rows(rows: Sequence[Sequence[str]], header: Sequence[str], width: int, theme: Theme) -> list[str]:
    if not header and all(len(row) == 2 for row in rows):
        return _columns([(clean_line(name), text) for name, text in rows], width, theme)
    from panpan.faces.terminal.rendering.leaf_blocks import body_rows, columns_of, header_rows

    cells = [[clean_line(cell) for cell in row] for row in rows]
    names = [theme.paint("strong", clean_line(name)) for name in header] or [""] * max(map(len, cells), default=0)
    columns = columns_of(names, cells, ["left"] * len(names), width)
    above = header_rows(columns, theme) if header else []
    return [*above, *(line for row in cells for line in body_rows(row, columns, width))]


def _columns(pairs: Sequence[tuple[str, str]], width: int, theme: Theme) -> list[str]:
    """Return rows of two columns, the first in colour; where there is no room, the second stands below it."""
    first = max((cell_width(name) for name, _ in pairs), default=0)
    is_beside = width - first - 2 * len(_GAP) >= _LEAST_SECOND
    indent = first + 2 * len(_GAP) if is_beside else 2 * len(_GAP)
    rows = []
    for name, text in pairs:
        painted = theme.paint("accent", cut(name, width - len(_GAP)))
        second = plain_rows(text, width - indent)
        if is_beside and (head := second.pop(0)):
            painted = f"{padded(painted, first)}{_GAP}{head}"
        rows += [f"{_GAP}{painted}", *(f"{' ' * indent}{row}" for row in second)]
    return rows


_MARKS: Mapping[ItemStatus, tuple[str, Role | None]] = {
    "pending": ("☐", None),
    "in_progress": ("◐", "strong"),
    "completed": ("☑", "dim"),
}


def checklist_lines(todos: Sequence[ChecklistItem], width: int, theme: Theme) -> list[str]:
    """Return a checklist with all of each todo; `width` is 4 cells or more."""
    rows: list[str] = []
    for todo in todos:
        mark, role = _MARKS[todo.status]
        for index, row in enumerate(wrapped(_words(todo), width - 2)):
            rows.append(theme.paint(role, f"{'  ' if index else f'{mark} '}{row}".rstrip(" ")))
    return rows


def short_checklist_lines(todos: Sequence[ChecklistItem], most: int, width: int, theme: Theme) -> list[str]:
    """Return at most `most` rows, one a todo: the one in progress and those around it; others are counted."""
    shown, hidden = todos, list[ChecklistItem]()
    if len(todos) > most:
        statuses = [todo.status for todo in todos]
        first: ItemStatus = "in_progress" if "in_progress" in statuses else "pending"
        begin = statuses.index(first) if first in statuses else len(todos)
        begin = max(min(begin - (most > 2), len(todos) - most + 1), 0)
        shown, hidden = todos[begin : begin + most - 1], [*todos[:begin], *todos[begin + most - 1 :]]
    rows: list[str] = []
    for todo in shown:
        mark, role = _MARKS[todo.status]
        rows.append(theme.paint(role, cut(f"{mark} {_words(todo)}", width)))
    return [*rows, theme.paint("dim", cut(_left_out(hidden), width))] if hidden else rows


def _words(todo: ChecklistItem) -> str:
    return clean_line(todo.active_form if todo.status == "in_progress" else todo.content)


def _left_out(todos: Sequence[ChecklistItem]) -> str:
    done = sum(todo.status == "completed" for todo in todos)
    parts = [f"{done} done"] if done else []
    parts += [f"{len(todos) - done} to do"] if len(todos) > done else []
    return f"… and {', '.join(parts)}"
