"""Displays of `types/content.py` as rows of a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import TypeAlias, assert_never

from panpan.faces.terminal.rendering.cells import (
    LEAST_WIDTH,
    Scrollback,
    break_line,
    cut,
    markdown_rows,
    pad_to_width,
    plain_rows,
    wrap_text,
)
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import counts_text, extent_text
from panpan.session.command import Option
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, escape_invisible
from panpan.types.content import (
    ChecklistDisplay,
    ChecklistItem,
    DiffDisplay,
    Display,
    FileDiff,
    ItemStatus,
    PlanDisplay,
    RejectedDisplay,
    Span,
    SummaryDisplay,
    TableDisplay,
    TextDisplay,
)
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.role import Role

_HUNK = compile_late(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_LEFT_OUT = compile_late(r"… ([\d,]+) more lines")
_WORD = compile_late(r"\w+|\s+|.")
_TAB = 4
_UNBROKEN = 1_000_000
"""Width of rows that the pager breaks itself."""
_MAX_CHARS_TO_COMPARE = 300
"""Most characters of a line in which changed words are marked."""
_ALIKE = 0.4
"""Least similarity of a removed and an added line for marking changed words."""
MAX_REJECTED_ROWS = 60
"""Most rows of each file of a change that was not made."""
_COLOURLESS = Theme("plain", has_sequences=False)
_ROOM_FOR_TEXT = 20
"""Fewest cells for the text of a line; if line numbers would leave fewer, they are left out."""


_ToSpans: TypeAlias = Callable[[str], Sequence[tuple[str, Role | None]]]
"""Returns the parts of a line of code with their roles."""


@dataclass(frozen=True, slots=True)
class _Line:
    sign: str
    """Blank, `-`, `+`, `@` for the beginning of a hunk, or a backslash for a note."""
    text: str
    old: int | None = None
    new: int | None = None
    other: str | None = None
    """Counterpart: the added line in place of a removed one, or the reverse."""
    stands_for: int = 1
    """Number of lines of the diff that it represents."""


def diff_lines(
    file: FileDiff,
    width: int,
    theme: Theme,
    max_lines: int | None = None,
    *,
    shows_controls: bool = False,
    names_file: bool = True,
) -> list[str]:
    """Return the rows of a diff, a heading first; long lines continue in the next row.

    Args:
        file: The change.
        width: Cells, 4 or more.
        theme: Colours.
        max_lines: Most rows, 2 or more, including heading and note; None: all.
        shows_controls: True to spell out control and invisible characters, for a person who has to judge them.
        names_file: False if the path is shown above already.
    """
    heading = _heading(file, theme, shows_controls=shows_controls, names_file=names_file)
    rows = break_line(heading, width) if shows_controls else [cut(heading, width)]
    lines = _with_counterparts(list(_parsed(file.diff, shows_controls=shows_controls)))
    if max_lines is not None and len(lines) > max_lines:
        lines = _with_less_removed(lines, max_lines // 2)
    layout = _Layout(lines, width, theme, _spans_of(file.path) if theme.has_hues else _one_span)
    for index, line in enumerate(lines):
        added = layout.rows(line)
        room = len(rows) + len(added) if max_lines is None else max_lines - len(rows)
        is_last = index == len(lines) - 1
        if len(added) > room - (0 if is_last else 1):
            hidden = sum(line.stands_for for line in lines[index:])
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
    counts = f"{theme.paint('added', f'+{file.added}')} {theme.paint('removed', f'-{file.removed}')}"
    return f"{counts} {theme.paint('dim', f'({extent})')}" if (extent := extent_text(file)) else counts


def _harmless(text: str, *, shows_controls: bool) -> str:
    clean = escape_invisible(text) if shows_controls else clean_for_terminal(text)
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
        if hidden := _LEFT_OUT.fullmatch(match[3].strip() if match else text):
            yield _gap(int(hidden[1].replace(",", "")))
            continue
        if match:
            if old > 1:  # otherwise nothing was left out before it
                yield _Line("@", _harmless(match[3].strip(), shows_controls=shows_controls), stands_for=0)
            continue
        if not is_in_hunk or (not text and index == len(source) - 1):
            continue  # the heading has the names of the files
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
    """Return the lines with counterparts, wherever as many lines were added as removed."""
    groups = [list(group) for _, group in groupby(lines, key=lambda line: line.sign)]
    for before, after in pairwise(groups):
        if before[0].sign == "-" and after[0].sign == "+" and len(before) == len(after):
            pairs = list(zip(before, after, strict=True))
            before[:] = [replace(one, other=other.text) for one, other in pairs]
            after[:] = [replace(other, other=one.text) for one, other in pairs]
    return [line for group in groups for line in group]


def _with_less_removed(lines: Sequence[_Line], most: int) -> list[_Line]:
    """Return the lines with long runs of removed ones shortened, so that the added lines are also visible."""
    shorter: list[_Line] = []
    run = hidden = 0
    for line in lines:
        run = run + 1 if line.sign == "-" else 0
        if run > most:
            hidden += 1
            continue
        if hidden and line.sign == "@":
            hidden += line.stands_for
        elif hidden:
            shorter += [_gap(hidden), line]
            hidden = 0
        else:
            shorter.append(line)
    return [*shorter, _gap(hidden)] if hidden else shorter


def _gap(count: int) -> _Line:
    return _Line("@", f"{count:,} more line{'s' * (count != 1)}", stands_for=count)


class _Layout:
    def __init__(self, lines: Sequence[_Line], width: int, theme: Theme, spans_of: _ToSpans) -> None:
        self._width = width
        self._theme = theme
        highest = max((number for line in lines for number in (line.old, line.new) if number is not None), default=0)
        digits = len(str(highest))
        self._digits = digits if width >= digits + 3 + _ROOM_FOR_TEXT else 0
        self._gutter = self._digits + 1 if self._digits else 0
        self._spans_of = spans_of

    def rows(self, line: _Line) -> list[str]:
        match line.sign:
            case "@":
                return [self._theme.paint("hunk", cut(f"⋯ {line.text}".rstrip(), self._width))]
            case "\\":
                return [self._theme.paint("dim", cut(" " * self._gutter + line.text, self._width))]
            case "-":
                return self._changed(line, "removed", "removed_word", "removed_row", "removed_row_word")
            case "+":
                return self._changed(line, "added", "added_word", "added_row", "added_row_word")
            case _:
                return self._laid_out(line, " ", self._code(line.text))

    def _changed(self, line: _Line, role: Role, word: Role, row: Role, row_word: Role) -> list[str]:
        parts = [(line.text, False)]
        if line.other is not None and self._theme.has_colour:
            parts = _changed_words(line.text, line.other)
        paint = self._theme.paint
        if not self._theme.has_hues:
            painted = "".join(paint(word if is_changed else role, part) for part, is_changed in parts)
            return self._laid_out(line, paint(role, line.sign), painted)
        spans = _crossed(parts, self._spans_of(line.text))
        painted = "".join(paint(role, text, on=row_word if is_changed else row) for text, is_changed, role in spans)
        return self._laid_out(line, paint(role, line.sign, on=row), painted, row)

    def _code(self, text: str) -> str:
        return "".join(self._theme.paint(role, part) for part, role in self._spans_of(text))

    def _laid_out(self, line: _Line, sign: str, text: str, ground: Role | None = None) -> list[str]:
        """Return the rows of a line with its new number, or its old one if it was removed."""
        room = self._width - self._gutter - 2
        first, *others = break_line(text, room)
        gutter = more = ""
        if self._digits:
            number = line.old if line.new is None else line.new
            gutter = self._theme.paint("dim", f"{'' if number is None else number:>{self._digits}}") + " "
            more = " " * self._gutter
        heads = [f"{gutter}{sign}", *(more + self._theme.paint("dim", "·", on=ground) for _ in others)]
        if ground is None:
            return [f"{head} {row}".rstrip(" ") for head, row in zip(heads, (first, *others), strict=True)]

        def filled(row: str) -> str:
            return (
                self._theme.paint(None, " ", on=ground)
                + row
                + self._theme.paint(None, " " * max(room - cell_width(row), 0), on=ground)
            )

        return [head + filled(row) for head, row in zip(heads, (first, *others), strict=True)]


def _spans_of(path: str) -> _ToSpans:
    from panpan.faces.terminal.rendering.leaf_blocks import lexer_for_file, spans_of  # few sessions begin with a diff

    return partial(spans_of, lexer=lexer_for_file(path))


def _one_span(text: str) -> Sequence[tuple[str, Role | None]]:
    return [(text, None)]


def _crossed(
    parts: Sequence[tuple[str, bool]], spans: Sequence[tuple[str, Role | None]]
) -> Iterator[tuple[str, bool, Role | None]]:
    """Yield the pieces of a line, each in one of its `parts` and one of its `spans`."""
    ends = sorted({0, *accumulate(len(text) for text, _ in parts), *accumulate(len(text) for text, _ in spans)})
    line = "".join(text for text, _ in parts)
    flags = [flag for text, flag in parts for _ in text]
    roles = [role for text, role in spans for _ in text]
    for start, end in pairwise(ends):
        yield line[start:end], flags[start], roles[start]


def _changed_words(text: str, other: str) -> list[tuple[str, bool]]:
    """Return the parts of a line, each with True if the other line lacks it."""
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
"""Fewest cells of the second of two columns beside the first."""


def show_displays(scrollback: Scrollback, displays: Sequence[Display]) -> None:
    """Show displays below each other."""
    width = max(scrollback.width, LEAST_WIDTH)
    for display in displays:
        rows = display_rows(display, width, scrollback.theme)
        is_indented = isinstance(display, ChecklistDisplay)
        scrollback.show(*(f"{_GAP}{row}" if is_indented else row for row in rows))


def option_rows(options: Sequence[Option], width: int, theme: Theme) -> list[str]:
    """Return the rows of a list that is picked from by number; `width` is 8 cells or more."""
    rows = list[str]()
    for number, option in enumerate(options, 1):
        rows += wrap_text(f"{number:5}. {clean_line(option.label)}{' (now)' if option.is_current else ''}", width)
        if option.detail:
            rows += (theme.paint("dim", f"       {row}") for row in wrap_text(clean_line(option.detail), width - 7))
    return rows


def pager_rows(displays: Sequence[Display], width: int, theme: Theme) -> list[str]:
    """Return the rows of displays for a pager, which breaks long lines itself."""
    widths = (_UNBROKEN if isinstance(one, TextDisplay) else max(width, LEAST_WIDTH) for one in displays)
    return [row for one, cells in zip(displays, widths, strict=True) for row in display_rows(one, cells, theme)]


MOST_PRINTED = 100
"""Rows of a long text that are printed if its end matters."""


def printed_rows_of(displays: Sequence[Display], width: int, theme: Theme, *, from_end: bool) -> list[str]:
    """Return the rows of displays where there is no pager: all of them, or with `from_end` the last `MOST_PRINTED`."""
    rows = [row for one in displays for row in display_rows(one, max(width, LEAST_WIDTH), theme)]
    if not from_end or (above := len(rows) - MOST_PRINTED) <= 0:
        return rows
    return [theme.paint("dim", f"… {above:,} more lines above"), *rows[-MOST_PRINTED:]]


def display_rows(display: Display, width: int, theme: Theme) -> list[str]:
    """Return the rows of a display; `width` is 8 cells or more."""
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
            return wrap_text(clean_line(text), width)
        case RejectedDisplay(text=text, files=files):
            plain = [row for file in files for row in diff_lines(file, width, _COLOURLESS, MAX_REJECTED_ROWS)]
            return [*wrap_text(clean_line(text), width), *(theme.paint("dim", row) for row in plain)]
        case PlanDisplay(text=text, summary=summary):
            return [*wrap_text(clean_line(summary), width), "", *markdown_rows(text, width, theme)]
        case _:
            assert_never(display)


def diff_rows(
    diff: DiffDisplay, width: int, theme: Theme, max_lines: int | None = None, *, names_files: bool = True
) -> list[str]:
    """Return the rows of all files, as `diff_lines` does, and of the notes."""
    files = [diff_lines(file, width, theme, max_lines, names_file=names_files) for file in diff.files]
    notes = [theme.paint("bad", row) for note in diff.notes for row in wrap_text(clean_line(note), width)]
    return [*(row for rows in files for row in rows), *notes]


def _text_rows(spans: Sequence[Span], width: int, theme: Theme) -> list[str]:
    if len(spans) == 1:
        return [theme.paint(spans[0].role, row) for row in plain_rows(spans[0].text, width)]
    texts = (span.text if theme.has_hues else span.without_hues or span.text for span in spans)
    clean = (clean_for_terminal(text).expandtabs(_TAB) for text in texts)
    return wrap_text("".join(theme.paint(span.role, text) for span, text in zip(spans, clean, strict=True)), width)


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
    """Return rows of two columns, the first in colour; if there is no room, the second is below the first."""
    first = max((cell_width(name) for name, _ in pairs), default=0)
    is_beside = width - first - 2 * len(_GAP) >= _LEAST_SECOND
    indent = first + 2 * len(_GAP) if is_beside else 2 * len(_GAP)
    rows = []
    for name, text in pairs:
        painted = theme.paint("accent", cut(name, width - len(_GAP)))
        second = plain_rows(text, width - indent)
        if is_beside and (head := second.pop(0)):
            painted = f"{pad_to_width(painted, first)}{_GAP}{head}"
        rows += [f"{_GAP}{painted}", *(f"{' ' * indent}{row}" for row in second)]
    return rows


_MARKS: Mapping[ItemStatus, tuple[str, Role | None]] = {
    "pending": ("☐", None),
    "in_progress": ("◐", "strong"),
    "completed": ("☑", "dim"),
}


def checklist_lines(todos: Sequence[ChecklistItem], width: int, theme: Theme) -> list[str]:
    """Return the rows of a checklist with the whole text of each todo; `width` is 4 cells or more."""
    rows: list[str] = []
    for todo in todos:
        mark, role = _MARKS[todo.status]
        for index, row in enumerate(wrap_text(_words(todo), width - 2)):
            rows.append(theme.paint(role, f"{'  ' if index else f'{mark} '}{row}".rstrip(" ")))
    return rows


def short_checklist_lines(todos: Sequence[ChecklistItem], most: int, width: int, theme: Theme) -> list[str]:
    """Return at most `most` rows, one for each todo: the one in progress and those around it; others are counted."""
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
